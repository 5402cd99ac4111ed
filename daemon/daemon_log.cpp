// SPDX-License-Identifier: Apache-2.0
// What the kernel says: its log, and the notices of drivers.
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {

// By the kernel log or by the compute driver. While a GPU is reset, and until that is over, nothing looks into what its
// driver holds (nvtop 168); afterwards limits are read again, and what was in force is written again.
void Daemon::Impl::follow_reset(Device& device, klog::Type type, SteadyTime at) {
  if (type == klog::Type::GpuResetBegin) device.quiet_until = at + std::chrono::minutes(2);
  if (type == klog::Type::GpuResetFailed) device.quiet_until = at + std::chrono::hours(24 * 365);
  if (type != klog::Type::GpuResetSucceeded) return;
  device.quiet_until = at + std::chrono::seconds(5);
  next_discovery = std::min(next_discovery, clock.now().steady + std::chrono::seconds(5));
  if (policies) policies->device_came_back(device.info.id());
}

void Daemon::Impl::start_kernel_log() {
  // A tree of another machine has a log of its own or none.
  if (!options.sysroot.empty() && access((options.sysroot + "/dev/kmsg").c_str(), F_OK) != 0) return;
  telemetry::LogReader::Options log;
  log.program = options.reader;
  log.sysroot = options.sysroot;
  log.after = read_log_place(options.state_dir, boot_id);
  telemetry::LogReader::Handlers on;
  on.news = [this](const telemetry::KlogFrame& frame) { on_kernel_log(frame); };
  on.log = [](Severity severity, const std::string& text) { log_line(severity, text); };
  kernel_log = std::make_unique<telemetry::LogReader>(io, std::move(log), std::move(on));
}

// The device that a line is about: by its address, or the only one of its driver when the line names none.
Device* Daemon::Impl::concerned(const telemetry::KlogFrame::Item& item) {
  if (item.gpu) return device_at(*item.gpu);
  if (item.event.device) return device_at(*item.event.device);
  if ((item.event.from & (klog::Amd | klog::Bare)) == 0 || devices.size() != 1) return nullptr;
  return &devices.begin()->second;
}

void Daemon::Impl::on_kernel_log(const telemetry::KlogFrame& frame) {
  constexpr std::size_t kMostEarly = 256;
  if (!discovered && early_log.size() < kMostEarly) {
    early_log.push_back(frame);
    return;
  }
  const auto now = clock.now();
  if (frame.lost > 0) happened(lost_records(frame.lost, now.wall, boot_id));
  for (const auto& item : frame.items) {
    auto event = event_of(item, now.wall, boot_id);
    auto* device = concerned(item);
    if (device != nullptr) event.device = device->info.id();
    const auto age = Duration(static_cast<std::int64_t>(item.age_us));
    if (device != nullptr) follow_reset(*device, item.event.type, now.steady + -age);
    if (device != nullptr && item.event.type == klog::Type::GpuResetBegin) {
      device->reset_in_log = now.steady;
      device->reset_told.reset();
    }
    if (const auto sign = sign_of(item.event); sign && device != nullptr)
      publish(engine.on_sign(device->info, *sign, {now.steady + -age, event.time, item.event.text}, now));
    happened(std::move(event));
  }
  write_log_place(options.state_dir, boot_id, frame.sequence);
}

void Daemon::Impl::on_notice(const Notice& notice) {
  auto event = event_of(notice, clock.now().wall, boot_id);
  if (const auto address = parse_pci_address(notice.device)) {
    if (const auto* device = device_at(*address)) {
      event.device = device->info.id();
      if (notice.kind == Notice::Kind::Wedged) {
        const auto now = clock.now();
        const auto sign = notice.methods == "none" ? health::Sign::ResetSucceeded : health::Sign::Wedged;
        publish(engine.on_sign(device->info, sign, {now.steady, now.wall, event.text}, now));
      }
    }
  }
  happened(std::move(event));
}

}  // namespace gpuhealth::daemon
