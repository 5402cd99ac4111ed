// SPDX-License-Identifier: Apache-2.0
#include "daemon/log_events.hpp"

#include <array>
#include <cstdio>
#include <fstream>

#include "telemetry/klog/types.hpp"

namespace gpuhealth::daemon {
namespace {

std::string place_file(const std::string& state_dir) {
  return state_dir + "/kernel-log";
}

}  // namespace

Event event_of(const telemetry::KlogFrame::Item& item, WallTime now, const std::string& boot_id) {
  const auto& seen = item.event;
  const auto& type = klog::info(seen.type);
  Event out;
  out.time = now - Duration(static_cast<std::int64_t>(item.age_us));
  out.type = type.name;
  out.severity = seen.severity;
  out.text = std::string(type.meaning) + ": " + seen.text;
  if (seen.count > 1) out.text += " (" + std::to_string(seen.count) + " times)";
  if (seen.pid != 0) out.text += " (program " + seen.process + ", " + std::to_string(seen.pid) + ")";
  out.boot_id = boot_id;
  return out;
}

Event event_of(const Notice& notice, WallTime now, const std::string& boot_id) {
  Event out;
  out.time = now;
  out.boot_id = boot_id;
  if (notice.kind == Notice::Kind::Coredump) {
    out.type = klog::info(klog::Type::GpuCoredump).name;
    out.text = "the driver saved the state of the GPU " +
               (notice.device.empty() ? "(which, it does not say)" : "at " + notice.device) +
               " in /sys/class/devcoredump, for some minutes";
    return out;
  }
  out.type = klog::info(klog::Type::GpuWedged).name;
  out.severity = notice.methods == "none" ? Severity::Info : Severity::Critical;
  out.text = "the driver says of the GPU " +
             (notice.device.empty() ? std::string("(which, it does not say)") : "at " + notice.device) + ": " +
             meaning_of_wedged(notice.methods);
  if (notice.pid != 0) out.text += " (program " + notice.task + ", " + std::to_string(notice.pid) + ")";
  return out;
}

Event lost_records(std::uint64_t lost, WallTime now, const std::string& boot_id) {
  Event out;
  out.time = now;
  out.type = "klog.lost";
  out.text = std::to_string(lost) +
             " lines of the kernel log were overwritten before they could be read; what they said is not known";
  out.boot_id = boot_id;
  return out;
}

std::optional<health::Sign> sign_of(const klog::Event& event) {
  using health::Sign;
  struct Row {
    klog::Type type;
    Severity at_least;
    Sign sign;
  };
  static constexpr std::array kRows = std::to_array<Row>({
      {klog::Type::GpuResetBegin, Severity::Info, Sign::ResetBegan},
      {klog::Type::GpuResetSucceeded, Severity::Info, Sign::ResetSucceeded},
      {klog::Type::GpuResetFailed, Severity::Critical, Sign::ResetFailed},
      {klog::Type::GpuWedged, Severity::Critical, Sign::Wedged},
      {klog::Type::GpuWedged, Severity::Info, Sign::ResetSucceeded},
      {klog::Type::MesHang, Severity::Critical, Sign::SchedulerHang},
      {klog::Type::HwsHang, Severity::Critical, Sign::SchedulerHang},
      {klog::Type::BusLost, Severity::Critical, Sign::BusLost},
      {klog::Type::SmuUnresponsive, Severity::Critical, Sign::SmuSilent},
      {klog::Type::FirmwareMissing, Severity::Warning, Sign::FirmwareMissing},
      {klog::Type::InitFailed, Severity::Critical, Sign::InitFailed},
      {klog::Type::RasUncorrectable, Severity::Critical, Sign::MemoryError},
      {klog::Type::RasPoison, Severity::Critical, Sign::MemoryError},
  });
  // "GPU has fallen off the bus" (NVIDIA's list of Xid errors).
  if (event.type == klog::Type::Xid && event.subject == "79") return Sign::BusLost;
  for (const auto& row : kRows)
    if (row.type == event.type && event.severity >= row.at_least) return row.sign;
  return std::nullopt;
}

std::optional<std::uint64_t> read_log_place(const std::string& state_dir, const std::string& boot_id) {
  std::ifstream file(place_file(state_dir));
  std::string boot;
  std::uint64_t sequence = 0;
  if (!(file >> boot >> sequence) || boot != boot_id) return std::nullopt;
  return sequence;
}

void write_log_place(const std::string& state_dir, const std::string& boot_id, std::uint64_t sequence) {
  const auto path = place_file(state_dir);
  const auto beside = path + ".new";
  {
    std::ofstream file(beside, std::ios::trunc);
    file << boot_id << ' ' << sequence << '\n';
    if (!file.flush()) return;
  }
  std::rename(beside.c_str(), path.c_str());
}

}  // namespace gpuhealth::daemon
