// SPDX-License-Identifier: Apache-2.0
// From an ASIC's throttle bits to reasons, with the gates of the quirk table: bits that a part always sets are not
// believed without a second sign.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device.hpp"
#include "core/throttle.hpp"

namespace gpuhealth::telemetry {

struct ThrottleInput {
  AsicFamily family = AsicFamily::Unknown;
  std::optional<std::uint64_t> asic_status;   // gpu_metrics throttle_status
  std::optional<std::uint64_t> indep_status;  // gpu_metrics indep_throttle_status
  std::optional<double> junction_celsius;     // second signs, where there are any
  std::optional<double> junction_critical_celsius;
  std::optional<double> power_watt;
  std::optional<double> power_cap_watt;
};

struct ThrottleOutput {
  bool known = false;  // this part reports reasons in its metrics
  ThrottleSet believed;
  ThrottleSet gated;  // set by the firmware, not believed
};

ThrottleOutput decode_throttle(const ThrottleInput& input);

}  // namespace gpuhealth::telemetry
