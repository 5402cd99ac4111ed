// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"

#include <ctime>

namespace gpuhealth {
namespace {

std::int64_t microseconds(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1'000'000 + ts.tv_nsec / 1'000;
}

}  // namespace

Now SystemClock::now() const {
  return {wall_from_microseconds(microseconds(CLOCK_REALTIME)), {microseconds(CLOCK_BOOTTIME)}};
}

Now ScaledClock::now() const {
  const Now real = SystemClock().now();
  const Duration passed(static_cast<std::int64_t>(static_cast<double>((real.steady - start_.steady).count()) * speed_));
  return {start_.wall + passed, start_.steady + passed};
}

}  // namespace gpuhealth
