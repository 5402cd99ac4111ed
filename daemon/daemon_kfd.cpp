// SPDX-License-Identifier: Apache-2.0
// What the compute driver tells, beside the kernel log: the same types of events. Where both tell of one reset it
// counts once, by the log.
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr auto kLogMayFollow = std::chrono::seconds(5);
constexpr auto kLogMayPrecede = std::chrono::seconds(30);

}  // namespace

// Once a GPU is there that the compute driver knows.
void Daemon::Impl::start_kfd_events() {
  if (kfd_events || !options.sysroot.empty() || access("/dev/kfd", F_OK) != 0) return;
  const bool any = std::ranges::any_of(devices, [](const auto& d) { return !d.second.info.compute_nodes.empty(); });
  if (!any) return;
  telemetry::LogReader::Options to;
  to.program = options.reader;
  to.source = "kfd-events";
  to.what = "the compute driver's events";
  telemetry::LogReader::Handlers on;
  on.news = [this](const telemetry::KlogFrame& frame) { on_kfd_events(frame); };
  on.log = [](Severity severity, const std::string& text) { log_line(severity, text); };
  kfd_events = std::make_unique<telemetry::LogReader>(io, std::move(to), std::move(on));
}

void Daemon::Impl::on_kfd_events(const telemetry::KlogFrame& frame) {
  const auto now = clock.now();
  if (frame.lost > 0) {
    event(Severity::Info, "kfd.lost", {},
          "the compute driver dropped events, of " + std::to_string(frame.lost) + " resets among them");
  }
  for (const auto& item : frame.items) {
    auto event = event_of(item, now.wall, boot_id);
    auto* device = item.gpu ? device_at(*item.gpu) : nullptr;
    if (device != nullptr) {
      event.device = device->info.id();
      if (item.event.type == klog::Type::GpuResetBegin && now.steady - device->reset_in_log > kLogMayPrecede)
        device->reset_told = {now.steady, now.wall, event.text};
      follow_reset(*device, item.event.type, now.steady);
    }
    happened(std::move(event));
  }
}

// Nobody else told of it: the kernel log cannot be read here, or lost it.
void Daemon::Impl::settle_resets(SteadyTime now) {
  for (auto& [id, device] : devices) {
    if (!device.reset_told || now - device.reset_told->at < kLogMayFollow) continue;
    const auto told = *std::exchange(device.reset_told, std::nullopt);
    publish(engine.on_sign(device.info, health::Sign::ResetBegan, told, clock.now()));
    publish(engine.on_sign(device.info, health::Sign::ResetSucceeded, {now, clock.now().wall, told.text}, clock.now()));
  }
}

// The counter of amdgpu's ioctl, which tells of a loss that no line of the log did.
void Daemon::Impl::compare_vram_losses(Device& device, const Sample& now) {
  const auto losses = now.value(ReadingId::VramLosses);
  if (!losses) return;
  const auto then = std::exchange(device.vram_losses, losses);
  if (!then || *losses <= *then) return;  // fewer: the driver was loaded anew
  const auto more = static_cast<std::uint64_t>(*losses - *then);
  event(Severity::Warning, std::string(klog::info(klog::Type::VramLost).name), device.info.id(),
        device.label + ": " + std::string(klog::info(klog::Type::VramLost).meaning) + " (" + std::to_string(more) +
            (more == 1 ? " time" : " times") + " since the last look, by the driver's counter)");
}

}  // namespace gpuhealth::daemon
