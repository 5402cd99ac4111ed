// SPDX-License-Identifier: Apache-2.0
// Minute buckets that are still in memory, and the arithmetic of buckets: minimum, maximum, sum and count of any set of
// values, so that merged buckets are exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "core/clock.hpp"
#include "core/reading.hpp"

namespace gpuhealth::store {

using Minute = std::int64_t;  // since 1970, negative before

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
inline Minute minute_of(WallTime time) {
  return floor_div(to_microseconds(time), 60'000'000);
}
inline Minute minutes(Duration duration) {
  return duration.count() / 60'000'000;
}
// Saturates: the minute comes from a file.
inline WallTime time_of(Minute minute) {
  constexpr std::int64_t limit = INT64_MAX / 60'000'000;
  return wall_from_microseconds(std::clamp(minute, -limit, limit) * 60'000'000);
}

struct Aggregate {
  double min = 0;
  double max = 0;
  double sum = 0;
  std::int64_t count = 0;

  void merge(const Aggregate& other) {
    min = count == 0 ? other.min : std::min(min, other.min);
    max = count == 0 ? other.max : std::max(max, other.max);
    sum += other.sum;
    count += other.count;
  }
};

struct Bucket {
  std::map<std::string, std::map<ReadingId, Aggregate>> devices;
  std::uint64_t samples = 0;
};

struct Pending {
  std::map<Minute, Bucket> buckets;
  std::uint64_t dropped = 0;  // samples lost because they could not be written for long
};

}  // namespace gpuhealth::store
