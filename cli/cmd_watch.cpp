// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/numbers.hpp"
#include "cli/screen.hpp"
#include "cli/watch.hpp"

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

ExitCode watch_on_screen(const Context& context, double interval) {
  Source source(context);
  auto machine = source.look();
  if (!machine) return complain(context, machine.error());
  watch_screen(std::move(*machine), [&] { return source.look(); }, interval, context.colour);
  return ExitCode::Ok;
}

// A terminal that cannot place its cursor gets lines.
bool has_screen() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
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
    const bool screen = context.terminal.interactive && !context.json && !context.quiet && has_screen();
    return screen ? watch_on_screen(context, *interval) : watch_lines(context, *interval);
  };
}

}  // namespace gpuhealth::cli
