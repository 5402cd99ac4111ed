// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/numbers.hpp"
#include "cli/render.hpp"
#include "cli/screen.hpp"

namespace gpuhealth::cli {
namespace {

// Keeps a connection; a look after the daemon went away connects anew.
class Source {
 public:
  explicit Source(const Context& context) : context_(context) {}
  Result<Machine> look() {
    if (!client_) {
      auto client = connect(context_);
      if (!client) return tl::unexpected<Error>(client.error());
      client_.emplace(std::move(*client));
    }
    auto machine = cli::look(*client_);
    if (!machine) client_.reset();
    return machine;
  }

 private:
  const Context& context_;
  std::optional<dbus::Client> client_;
};

Page render_screen(const Result<Machine>& machine, double interval, const Terminal& terminal) {
  Page page;
  if (machine) {
    Terminal above = terminal;  // two lines are ours
    above.rows -= std::min<std::size_t>(above.rows, 1);
    page = render_status(*machine, above);
  } else {
    const std::string& text = machine.error().text;
    page.line({{"The daemon does not answer; trying again.", Tone::Warning}});
    page.paragraph(text, 0, terminal.columns);
  }
  page.line();
  page.line({{format_time(wall_now()) + ", every " + format_number(interval) + " s; q quits"}});
  return page;
}

ExitCode watch_screen(const Context& context, double interval) {
  Source source(context);
  auto machine = source.look();
  if (!machine) return complain(context, machine.error());
  Screen screen;
  while (true) {
    const Terminal terminal = detect_terminal(STDOUT_FILENO, context.colour);
    screen.draw(render_screen(machine, interval, terminal), terminal);
    const Wake wake = screen.wait(interval);
    if (wake == Wake::Quit) return ExitCode::Ok;
    if (wake == Wake::Tick) machine = source.look();
  }
}

void show_change(const Context& context, const MachineChange& change, WallTime now) {
  if (context.json) {
    show(context, json_change(change, now), false);
  } else {
    Page page;
    page.line({{format_time(now) + "  "},
               {std::string(to_string(change.severity)), tone_of(change.severity)},
               {"  " + change.text}});
    show(context, page);
  }
  std::fflush(stdout);
}

// One line a change. The first look counts as a change from nothing, so that a reader knows where it begins.
ExitCode watch_lines(const Context& context, double interval) {
  Source source(context);
  Machine before;
  auto machine = source.look();
  if (!machine) return complain(context, machine.error());
  bool lost = false;
  const Signals signals;
  while (true) {
    if (machine) {
      if (lost) show_change(context, {"daemon.found", "", "the daemon answers again", Severity::Info}, machine->now);
      lost = false;
      for (const MachineChange& change : changes(before, *machine)) show_change(context, change, machine->now);
      before = std::move(*machine);
    } else if (!lost) {
      lost = true;
      show_change(context, {"daemon.lost", "", "the daemon does not answer", Severity::Warning}, wall_now());
    }
    if (std::ferror(stdout) != 0) return ExitCode::Failed;
    if (signals.wait(interval) == Wake::Quit) return ExitCode::Ok;
    machine = source.look();
  }
}

}  // namespace

Action set_up_watch(CLI::App& app) {
  auto interval = std::make_shared<double>(2);
  app.add_option("--interval", *interval, "seconds between two looks")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  return [interval](const Context& context) {
    const bool screen = context.terminal.interactive && !context.json && !context.quiet;
    return screen ? watch_screen(context, *interval) : watch_lines(context, *interval);
  };
}

}  // namespace gpuhealth::cli
