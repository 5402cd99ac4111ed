// SPDX-License-Identifier: Apache-2.0
// The numbers that detectors decide by; one table of defaults with a source each (thresholds.def).
#pragma once

#include <span>
#include <string_view>

#include "core/error.hpp"

namespace gpuhealth::health {

struct Thresholds {
#define THRESHOLD(id, key, unit, value, lowest, highest, text, source) double id = value;
#include "health/thresholds.def"
#undef THRESHOLD
};

struct ThresholdInfo {
  std::string_view key;  // "overheating.margin"
  std::string_view unit;
  double default_value;
  double lowest;
  double highest;
  std::string_view text;
  std::string_view source;
  double Thresholds::* field;
};
std::span<const ThresholdInfo> all_thresholds();
// Null for a key that is none.
const ThresholdInfo* find_threshold(std::string_view key);
// Refuses unknown keys, naming the nearest one, and values outside the key's range, naming the range.
Result<void> set_threshold(Thresholds& thresholds, std::string_view key, double value);

}  // namespace gpuhealth::health
