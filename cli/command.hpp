// SPDX-License-Identifier: Apache-2.0
// A command of gpuhealthctl: its options, and what it does once they are read. One file a command, one row a command.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cli/json.hpp"
#include "cli/machine.hpp"
#include "cli/page.hpp"
#include "core/error.hpp"
#include "core/exit_codes.hpp"
#include "dbus/client.hpp"

namespace CLI {
class App;
}

namespace gpuhealth::cli {

// What holds for every command.
struct Context {
  bool json = false;
  bool quiet = false;
  std::string bus;  // empty: GPUHEALTH_BUS_ADDRESS, else the system bus
  ColourChoice colour = ColourChoice::Auto;
  Terminal terminal;  // standard output
};

using Action = std::function<ExitCode(const Context&)>;

struct Command {
  std::string_view name;
  std::string_view summary;
  Action (*set_up)(CLI::App& app);  // adds the options
};
std::span<const Command> all_commands();

Action set_up_status(CLI::App& app);
Action set_up_devices(CLI::App& app);
Action set_up_watch(CLI::App& app);
Action set_up_history(CLI::App& app);
Action set_up_conditions(CLI::App& app);
Action set_up_explain(CLI::App& app);
Action set_up_acknowledge(CLI::App& app);
Action set_up_doctor(CLI::App& app);
Action set_up_inspect(CLI::App& app);
Action set_up_kernel(CLI::App& app);
Action set_up_actions(CLI::App& app);
Action set_up_policy(CLI::App& app);
Action set_up_decode_metrics(CLI::App& app);
Action set_up_classify_log(CLI::App& app);
Action set_up_canary(CLI::App& app);
Action set_up_replay(CLI::App& app);
Action set_up_report(CLI::App& app);
Action set_up_check(CLI::App& app);

// The whole command line: global options and a subcommand a row. `chosen` is set when the line is parsed; `context`
// gets the global options.
void build_command_line(CLI::App& app, Context& context, Action& chosen);
int run(int argc, char** argv);

// Standard output, unless --quiet.
void show(const Context& context, const Page& page);
void show(const Context& context, const Json& json, bool pretty = true);
// The page, or the JSON when that is asked for.
void show(const Context& context, const std::function<Page()>& page, const std::function<Json()>& json);

// Says what went wrong on standard error (and as JSON on standard output when that is asked for).
ExitCode complain(const Context& context, const Error& error);

WallTime wall_now();
Result<dbus::Client> connect(const Context& context);
Result<Machine> look(dbus::Client& client);

}  // namespace gpuhealth::cli
