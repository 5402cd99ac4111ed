// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.hpp"

#include <unistd.h>

#include <algorithm>

#include "cli/numbers.hpp"
#include "cli/screen.hpp"
#include "cli/watch_view.hpp"

namespace gpuhealth::cli {
namespace {

Page trouble(const Error& error, const Terminal& terminal) {
  Page page;
  page.line({{"The daemon does not answer; trying again.", Tone::Warning}});
  page.paragraph(error.text, 0, terminal.columns);
  return page;
}

class View {
 public:
  View(Machine first, double interval, ColourChoice colour)
      : machine_(std::move(first)), interval_(interval), colour_(colour) {
    trails_.note(*machine_);
  }
  void take(Result<Machine> machine) {
    machine_ = std::move(machine);
    if (machine_) trails_.note(*machine_);
  }
  // False: somebody wants to leave.
  bool take(Key key) {
    if (key == Key::Quit) return false;
    if (key == Key::Help) {
      help_ = !help_;
      std::swap(scroll_, other_);
      return true;
    }
    const Terminal terminal = detect_terminal(STDOUT_FILENO, colour_);
    scroll_.move(key, page(terminal).lines().size(), std::max<std::size_t>(terminal.rows, 2) - 1);
    return true;
  }
  void draw(Screen& screen) {
    const Terminal terminal = detect_terminal(STDOUT_FILENO, colour_);
    const std::string foot = help_ ? "? back  q quit"
                                   : "q quit  ? help  " + format_time(SystemClock().now().wall).substr(11) +
                                         ", every " + format_number(interval_) + " s";
    screen.draw(frame(page(terminal), scroll_, foot, terminal), terminal);
  }

 private:
  [[nodiscard]] Page page(const Terminal& terminal) const {
    if (help_) return render_watch_help();
    return machine_ ? render_watch(*machine_, trails_, terminal) : trouble(machine_.error(), terminal);
  }

  Result<Machine> machine_;
  double interval_;
  ColourChoice colour_;
  Trails trails_;
  Scroll scroll_;
  Scroll other_;  // of the page that is not seen: the help, or what it covers
  bool help_ = false;
};

}  // namespace

void watch_screen(Machine first, const std::function<Result<Machine>()>& look, double interval, ColourChoice colour) {
  View view(std::move(first), interval, colour);
  const SystemClock clock;
  const auto step = Duration(static_cast<std::int64_t>(interval * 1e6));
  auto next = clock.now().steady + step;  // keys do not put off the next look
  Screen screen;
  while (true) {
    view.draw(screen);
    const double left = std::max(0.0, static_cast<double>((next - clock.now().steady).count()) / 1e6);
    const Wake wake = screen.wait(left);
    if (wake == Wake::Quit) return;
    if (wake == Wake::Stopped) screen.stop();
    if (wake == Wake::Resumed) screen.resume();
    if (wake == Wake::Key) {
      for (const Key key : screen.keys())
        if (!view.take(key)) return;
    }
    if (wake == Wake::Tick) {
      view.take(look());
      next = clock.now().steady + step;
    }
  }
}

}  // namespace gpuhealth::cli
