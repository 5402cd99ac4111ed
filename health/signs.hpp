// SPDX-License-Identifier: Apache-2.0
// What the kernel has said of a device: told to the engine, remembered, and looked at by detectors beside the samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "core/clock.hpp"

namespace gpuhealth::health {

enum class Sign : std::uint8_t {
  ResetBegan,
  ResetSucceeded,
  ResetFailed,
  SchedulerHang,  // compute scheduler or its firmware does not answer; a reset should follow
  Wedged,         // the driver gave the GPU up
  BusLost,
  SmuSilent,
  FirmwareMissing,
  InitFailed,
  MemoryError,  // an error that was not corrected
  Count,
};

struct SignSeen {
  SteadyTime at;
  WallTime wall;
  std::string text;  // the kernel's words
};

class SignMemory {
 public:
  void see(Sign sign, SignSeen seen);
  // Another driver, or the same anew: what hung before it was bound does so no longer.
  void forget_hangs_before(SteadyTime time);
  [[nodiscard]] const SignSeen* last(Sign sign) const;
  // The last one, when it came at most `window` before `now`.
  [[nodiscard]] const SignSeen* recent(Sign sign, SteadyTime now, Duration window) const;
  // `a` came, and no `b` after it.
  [[nodiscard]] bool unanswered(Sign a, Sign b) const;
  [[nodiscard]] std::size_t resets(SteadyTime now, Duration window) const;

 private:
  std::array<std::optional<SignSeen>, static_cast<std::size_t>(Sign::Count)> last_;
  std::deque<SteadyTime> resets_;  // the last 64
};

}  // namespace gpuhealth::health
