// SPDX-License-Identifier: Apache-2.0
// What Intel's discrete GPUs (drivers xe and i915) say beyond the files of sources.def: throttle reasons a file each,
// and error counters where the driver has them. Sources: xe_gt_throttle.c, i915 intel_gt_sysfs_pm.c,
// sysfs_gt_errors.c; Linux 6.12 and newer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pci.hpp"
#include "core/reading.hpp"
#include "core/throttle.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {

inline constexpr std::uint16_t kVendorIntel = 0x8086;

// The graphics of the processor itself always sits at 0000:00:02.0, and has no memory nor sensors of its own.
bool is_discrete_intel(const PciAddress& address);
// "Arc A380"; empty for ids outside the table (intel_names.def).
std::string_view intel_name(std::uint16_t device_id);

// "reason_pl1" (xe) or "throttle_reason_pl1" (i915); nothing for files that are no reason and for newer words.
std::optional<ThrottleReason> intel_reason(std::string_view file);

struct ErrorCounter {
  std::size_t block = 0;  // of kRasBlocks
  RasKind kind{};
};
// "correctable_l3bank", "soc_fatal_hbm_ss0_1" …: which of our counters it is part of; nothing for other files.
std::optional<ErrorCounter> intel_error_counter(std::string_view file);

// Kept descriptors of one GPU's such files.
class IntelFiles {
 public:
  using Read = std::function<AttributeRead(const Fd&, std::string_view file)>;
  // `dir`: the GPU's folder. Without such files there is nothing to ask.
  explicit IntelFiles(const std::string& dir);
  // Of all engines' domains together; nothing where no domain answers. The reasons are asked while one is throttled.
  [[nodiscard]] std::optional<ThrottleSet> throttle(const Read& read) const;
  // Sums by counter. A counter that could not be read whole has its errno instead.
  [[nodiscard]] std::vector<Reading> errors(const Read& read) const;
  [[nodiscard]] bool has_throttle() const { return !domains_.empty(); }

 private:
  struct Named {
    Fd fd;
    std::string shown;
  };
  struct Reason {
    Named file;
    ThrottleReason reason{};
  };
  struct Domain {
    Named status;
    std::vector<Reason> reasons;
  };
  struct Counter {
    Named file;
    ReadingId id{};
  };
  void open_domain(const std::string& folder, const std::string& prefix, const std::string& shown);
  void open_counters(const std::string& folder, const std::string& shown);
  std::vector<Domain> domains_;
  std::vector<Counter> counters_;
};

}  // namespace gpuhealth::telemetry
