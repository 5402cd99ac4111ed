// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "core/nearest.hpp"
#include "core/version.hpp"
#include "telemetry/proc.hpp"

namespace gpuhealth::cli {
namespace {

constexpr auto kCommands = std::to_array<Command>({
    {"status", "what is wrong, what to do, and one line a GPU", set_up_status},
    {"devices", "all that is known of each GPU", set_up_devices},
    {"watch", "status, refreshed until q is pressed; one line a change when piped", set_up_watch},
    {"history", "a metric's curve", set_up_history},
    {"conditions", "conditions that are open, or were", set_up_conditions},
    {"explain", "what a condition means, its evidence, what to do", set_up_explain},
    {"acknowledge", "mark a condition as known, so that it is no longer announced", set_up_acknowledge},
    {"doctor", "what this machine lacks for full function", set_up_doctor},
    {"inspect", "look at GPUs without daemon, also in a captured tree", set_up_inspect},
    {"kernel", "which kernel boots; pin, try once, hold, undo", set_up_kernel},
    {"actions", "what was changed on this machine; confirm, take back, act by hand", set_up_actions},
    {"policy", "what is done about what: check, test, show, sign and install policies", set_up_policy},
    {"decode-metrics", "decode a gpu_metrics file", set_up_decode_metrics},
    {"classify-log", "what a saved kernel log says of GPUs", set_up_classify_log},
    {"canary", "measure what a GPU can do; list, compare and baseline the results", set_up_canary},
    {"replay", "feed recorded canary results through the statistics", set_up_replay},
    {"report", "what happened, in one page for a browser, or in one file for a bug report", set_up_report},
    {"check", "one line and an exit code for Nagios, Icinga and the like", set_up_check},
});

void write(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

Page lines_of(std::string_view prefix, std::string_view text) {
  Page page;
  bool first = true;
  while (true) {
    const std::size_t end = text.find('\n');
    page.line({{first ? prefix : ""}, {text.substr(0, end)}});
    first = false;
    if (end == std::string_view::npos) return page;
    text.remove_prefix(end + 1);
  }
}

// "did you mean …?" for the first word that no command or option took.
std::string hint_for(const CLI::App& app) {
  std::vector<std::string> candidates;
  const auto add_options = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      for (const auto& name : option->get_lnames()) candidates.push_back("--" + name);
    }
  };
  add_options(app);
  const auto chosen = app.get_subcommands();
  for (const CLI::App* sub : chosen) add_options(*sub);
  if (chosen.empty()) {
    for (const Command& command : kCommands) candidates.emplace_back(command.name);
  }
  const auto extras = app.remaining(true);
  const std::string near = extras.empty() ? "" : nearest(extras.front(), candidates);
  if (!near.empty()) return "did you mean " + near + "?";
  return "gpuhealthctl " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") + "--help tells what there is";
}

// To who reads plug-ins, 2 is a critical state of the machine, and a wrong command line says nothing of it.
constexpr int kPluginUnknown = 3;

int refuse(const CLI::App& app, const CLI::ParseError& error, bool json) {
  const Terminal terminal = detect_terminal(STDERR_FILENO, ColourChoice::Auto);
  const std::string text = std::string(error.what()) + "; " + hint_for(app);
  if (json) write(stdout, dump(json_error({ErrorCode::InvalidInput, text}), false) + "\n");
  const Page page = lines_of("gpuhealthctl: ", text);
  write(stderr, render(page, {terminal.interactive, terminal.colour, terminal.utf8, 0, 0}));
  const auto chosen = app.get_subcommands();
  const bool plugin = !chosen.empty() && chosen.front()->get_name() == "check";
  return plugin ? kPluginUnknown : static_cast<int>(ExitCode::Usage);
}

// What could not be written was not said.
int finish(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  write(stderr, "gpuhealthctl: cannot write to standard output\n");
  return static_cast<int>(ExitCode::Failed);
}

}  // namespace

std::span<const Command> all_commands() {
  return kCommands;
}

void build_command_line(CLI::App& app, Context& context, Action& chosen) {
  app.name("gpuhealthctl");
  app.description("Asks gpuhealthd about this machine's GPUs. Without a command: status.");
  app.footer("Options in front of a command may also follow it. Exit codes are in gpuhealthctl(1).");
  app.set_version_flag("--version", std::string("gpuhealthctl ") + kVersion, "print the version");
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_flag("--json", context.json, "print JSON (docs/json.md)");
  app.add_flag("-q,--quiet", context.quiet, "print nothing but errors; the exit code tells");
  app.add_option("--bus", context.bus, "D-Bus address instead of the system bus")->type_name("ADDRESS");
  const std::map<std::string, ColourChoice> colours = {
      {"auto", ColourChoice::Auto}, {"always", ColourChoice::Always}, {"never", ColourChoice::Never}};
  app.add_option("--color", context.colour, "auto, always or never")
      ->type_name("WHEN")
      ->transform(CLI::Transformer(colours).description(""))
      ->check([](const std::string& text) {
        const bool known = text == "0" || text == "1" || text == "2";  // what the transformer made of it
        return known ? std::string() : "must be auto, always or never";
      });
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    Action action = command.set_up(*sub);
    sub->callback([&chosen, action = std::move(action)] { chosen = action; });
  }
}

int run(int argc, char** argv) {
  CLI::App app;
  Context context;
  Action chosen;
  build_command_line(app, context, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return finish(app.exit(help));
  } catch (const CLI::ParseError& error) {
    // Options before the mistake are not yet in the context.
    const bool json = std::any_of(argv + 1, argv + argc, [](std::string_view word) { return word == "--json"; });
    return refuse(app, error, json);
  }
  context.terminal = detect_terminal(STDOUT_FILENO, context.colour);
  if (!chosen) {
    CLI::App none;
    chosen = set_up_status(none);
  }
  return finish(static_cast<int>(chosen(context)));
}

void show(const Context& context, const Page& page) {
  if (!context.quiet) write(stdout, render(page, context.terminal));
}

void show(const Context& context, const Json& json, bool pretty) {
  if (!context.quiet) write(stdout, dump(json, pretty) + "\n");
}

void show(const Context& context, const std::function<Page()>& page, const std::function<Json()>& json) {
  if (context.quiet) return;
  if (context.json) {
    show(context, json());
  } else {
    show(context, page());
  }
}

ExitCode complain(const Context& context, const Error& error) {
  const Terminal terminal = detect_terminal(STDERR_FILENO, context.colour);
  if (context.json) show(context, json_error(error));
  write(stderr, render(lines_of("gpuhealthctl: ", error.text), {terminal.interactive, false, terminal.utf8, 0, 0}));
  return exit_code(error.code);
}

WallTime wall_now() {
  return SystemClock().now().wall;
}

Result<dbus::Client> connect(const Context& context) {
  auto client = dbus::Client::connect(context.bus);
  if (client || client.error().code != ErrorCode::Unavailable) return client;
  Error error = client.error();
  error.text += "\nIs gpuhealthd running? gpuhealthctl doctor tells what is missing.";
  return tl::unexpected<Error>(std::move(error));
}

Result<Machine> look(dbus::Client& client) {
  auto manager = client.manager();
  if (!manager) return tl::unexpected<Error>(manager.error());
  auto devices = client.devices();
  if (!devices) return tl::unexpected<Error>(devices.error());
  auto conditions = client.conditions();
  if (!conditions) return tl::unexpected<Error>(conditions.error());
  std::ranges::sort(*devices, {}, &dbus::DeviceView::pci);
  // The bus tells no names; the kernel shows those that the caller may see.
  for (auto& device : *devices) {
    for (const auto& c : device.clients) {
      if (auto name = telemetry::process_name("", c.pid, c.started); !name.empty())
        device.client_names[c.pid] = std::move(name);
    }
  }
  auto actions = client.actions();
  if (!actions) return tl::unexpected<Error>(actions.error());
  return Machine{std::move(*manager), std::move(*devices), std::move(*conditions), wall_now(), std::move(*actions)};
}

}  // namespace gpuhealth::cli
