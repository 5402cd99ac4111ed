// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

Page render_all(std::span<const dbus::DeviceView> devices, WallTime now, const Terminal& terminal) {
  Page page;
  for (const auto& device : devices) {
    if (&device != devices.data()) page.line();
    page.append(render_device(device, now, terminal));
  }
  if (devices.empty()) page.line({{"No GPU found."}});
  return page;
}

ExitCode devices(const Context& context, const std::string& wanted) {
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  auto machine = look(*client);
  if (!machine) return complain(context, machine.error());
  std::span<const dbus::DeviceView> chosen = machine->devices;
  if (!wanted.empty()) {
    const auto device = choose_device(machine->devices, wanted);
    if (!device) return complain(context, device.error());
    chosen = {*device, 1};
  }
  show(
      context, [&] { return render_all(chosen, machine->now, context.terminal); },
      [&] { return json_devices(chosen); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_devices(CLI::App& app) {
  auto wanted = std::make_shared<std::string>();
  app.add_option("DEVICE", *wanted, "PCI address, id, or a part of the name; without it: all");
  return [wanted](const Context& context) { return devices(context, *wanted); };
}

}  // namespace gpuhealth::cli
