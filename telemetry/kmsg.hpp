// SPDX-License-Identifier: Apache-2.0
// The kernel log, live: records of /dev/kmsg from the oldest one that the kernel has, classified as they come
// (Documentation/ABI/testing/dev-kmsg). A wrap is counted, never mistaken for a quiet log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/frame.hpp"
#include "telemetry/klog/classifier.hpp"

namespace gpuhealth::telemetry {

class KmsgFollower {
 public:
  // Records up to `after` were dealt with before: they teach, and are no events.
  explicit KmsgFollower(klog::Facts facts = {}, std::optional<std::uint64_t> after = std::nullopt);

  // What a read gave: one record, or any piece of several.
  void take(std::string_view bytes);
  // Time passes; `uptime_us` as the kernel's records count it.
  void advance(std::int64_t uptime_us);
  // What is new since the last call, nothing when nothing is worth a frame.
  std::optional<KlogFrame> news(std::int64_t uptime_us);
  // Something may become an event, or its end, without another record.
  [[nodiscard]] bool waits() const { return waits_; }

 private:
  void record(std::string_view line);

  klog::Classifier classifier_;
  std::optional<std::uint64_t> after_;
  std::string pending_;
  std::uint64_t sequence_ = 0;  // of the last record; meaningful once seen_
  bool seen_ = false;
  std::uint64_t told_sequence_ = 0;
  std::uint64_t lost_ = 0;
  bool waits_ = false;
};

// Reads below `sysroot` (empty: this machine) and writes frames to `out` until `in` ends. Returns an exit code.
int follow_kmsg(const std::string& sysroot, std::optional<std::uint64_t> after, int in, int out);

// GPUs and the ports above them, from sysfs; reads nothing that wakes a device.
klog::Facts facts_of_machine(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
