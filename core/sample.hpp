// SPDX-License-Identifier: Apache-2.0
// What one GPU said at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/reading.hpp"
#include "core/throttle.hpp"

namespace gpuhealth {

enum class PowerState : std::uint8_t { Active, Suspended, Suspending, Resuming, Unknown };
// As the kernel writes power/runtime_status: "active", "suspended", …; "unsupported" where the file is missing is
// Active.
std::string_view to_string(PowerState state);

struct Sample {
  std::string device;  // DeviceInfo::id()
  Now time;
  PowerState power = PowerState::Unknown;
  std::vector<Reading> readings;  // at most one of each id, sorted by id
  ThrottleSet throttle;           // after the quirk gates
  ThrottleSet throttle_gated;     // set by the firmware, not believed (quirk table)
  bool throttle_known = false;    // false where this part does not report reasons
  std::string performance_level;  // "auto", "manual", …; empty when unknown
  std::string power_profile;      // "3D_FULL_SCREEN", …; empty when unknown

  [[nodiscard]] const Reading* find(ReadingId id) const;
  // The value where the reading is Valid, else nothing.
  [[nodiscard]] std::optional<double> value(ReadingId id) const;
};

}  // namespace gpuhealth
