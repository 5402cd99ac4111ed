// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/plugin.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  std::string device;
  bool npd = false;
  double timeout = 10;
};

PluginResult ask(const Context& context, const Options& options) {
  PluginResult unknown;
  const auto say = [&](const Error& error) {
    unknown.text = error.text.substr(0, error.text.find('\n'));
    std::ranges::replace(unknown.text, '|', '/');
    return unknown;
  };
  auto client = dbus::Client::connect(context.bus, std::chrono::milliseconds(static_cast<int>(options.timeout * 1000)));
  if (!client) return say(client.error());
  const auto machine = look(*client);
  if (!machine) return say(machine.error());
  std::string id;
  if (!options.device.empty()) {
    const auto device = choose_device(machine->devices, options.device);
    if (!device) return say(device.error());
    id = (*device)->id;
  }
  return plugin_result(*machine, id);
}

ExitCode check(const Context& context, const Options& options) {
  const PluginForm form = options.npd ? PluginForm::Npd : PluginForm::Nagios;
  const auto result = ask(context, options);
  if (context.json)
    show(context, json_plugin(result));
  else if (!context.quiet)
    std::fputs(plugin_text(result, form).c_str(), stdout);
  return static_cast<ExitCode>(plugin_code(result.state, form));
}

}  // namespace

Action set_up_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--device", options->device, "PCI address, id, or a part of the name; without it: all");
  app.add_flag("--npd", options->npd, "as node-problem-detector wants it: 0 well, 1 a problem, 2 unknown");
  app.add_option("-t,--timeout", options->timeout, "seconds for each answer of the daemon")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 300.0))
      ->capture_default_str();
  return [options](const Context& context) { return check(context, *options); };
}

}  // namespace gpuhealth::cli
