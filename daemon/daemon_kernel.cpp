// SPDX-License-Identifier: Apache-2.0
// Which kernel runs, boots next, and is good: the daemon's ends of it.
#include "daemon/daemon_impl.hpp"
#include "grub/tool.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr std::chrono::minutes kLookTime{1};

}  // namespace

// Of this machine alone, and by units of their own: the daemon itself may not write below /boot.
void Daemon::Impl::start_kernel() {
  if (!options.sysroot.empty() || !owner_of_canary_units()) return;
  kernel_act = std::make_unique<ActRunner>(io, ActRunner::Options{options.act, true});
  starter = std::make_unique<ActRunner>(io, ActRunner::Options{"/usr/bin/systemctl", false});
  KernelService::Options to;
  to.boot_id = boot_id;
  to.mark = options.state_dir + "/ended-in-order";
  to.reboot = config.settings.kernel_failed_trial == kReboot;
  to.verdict.patience = milliseconds(config.settings.kernel_patience);
  to.watched = {options.state_dir + "/kernel.json", options.state_dir + "/qualification.json", "/boot/grub/grub.cfg",
                "/boot/grub/grubenv"};
  KernelService::Handlers on;
  on.act = [this](const std::vector<std::string>& words, KernelService::Ended ended) {
    kernel_act->run(words, {}, grub::kOperationMost, std::move(ended));
  };
  on.look = [this](const std::vector<std::string>& words, KernelService::Ended ended) {
    // Not below the daemon either: its sandbox hides the modules, and a kernel without them counts for nothing.
    kernel_act->run(words, {}, kLookTime, std::move(ended));
  };
  on.gpus = [this] {
    std::vector<std::string> out;
    for (const auto& situation : canary_situations()) out.push_back(situation.device);
    return out;
  };
  on.gpu_ids = [this] {
    std::vector<std::string> out;
    out.reserve(devices.size());
    for (const auto& [id, device] : devices) out.push_back(id);
    return out;
  };
  on.gfx = [this] {
    std::set<std::string> out;
    for (const auto& [id, device] : devices)
      if (!device.info.gfx.empty()) out.insert(device.info.gfx);
    return std::vector<std::string>(out.begin(), out.end());
  };
  if (canaries) {
    on.run_canary = [this](const std::string& device) { canaries->ask_now(device, 1); };
    on.baselines = [this] { return canaries->baselines(); };
  }
  on.changed = [this](const dbus::KernelState& state) {
    bus.set_kernel(state);
    if (policies) policies->advisories_changed();
  };
  on.event = [this](Severity severity, const std::string& type, const std::string& text) {
    event(severity, type, {}, text);
  };
  on.qualified = [this] {
    starter->run({"--no-block", "--quiet", "start", "gpuhealth-qualified.target"}, {}, kLookTime,
                 [](int, const std::string&) {});
  };
  kernel = std::make_unique<KernelService>(clock, std::move(to), std::move(on));
  kernel->start();
}

}  // namespace gpuhealth::daemon
