// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpuhealth::klog {

// What the memory controllers of a sleeping GPU add to their error count with every query of them: all-ones registers,
// seen as steps of 0xFFFF0 on boards with RAS whose GPU may sleep.
inline constexpr std::uint64_t kSleepingCount = 1048560;

constexpr bool is_false_count(std::uint64_t count) {
  return count >= kSleepingCount && count % kSleepingCount < 4096;
}

}  // namespace gpuhealth::klog
