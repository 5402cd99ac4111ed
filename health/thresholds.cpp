// SPDX-License-Identifier: Apache-2.0
#include "health/thresholds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/nearest.hpp"

namespace gpuhealth::health {
namespace {

constexpr std::array kRows = std::to_array<ThresholdInfo>({
#define THRESHOLD(id, key, unit, value, lowest, highest, text, source) \
  {key, unit, value, lowest, highest, text, source, &Thresholds::id},
#include "health/thresholds.def"
#undef THRESHOLD
});

std::string_view nearest(std::string_view key) {
  return std::ranges::min(kRows, {}, [&](const ThresholdInfo& row) { return edits(key, row.key); }).key;
}

}  // namespace

std::span<const ThresholdInfo> all_thresholds() {
  return kRows;
}

const ThresholdInfo* find_threshold(std::string_view key) {
  const auto it = std::ranges::find(kRows, key, &ThresholdInfo::key);
  return it == kRows.end() ? nullptr : &*it;
}

Result<void> set_threshold(Thresholds& thresholds, std::string_view key, double value) {
  const auto* row = find_threshold(key);
  if (row == nullptr)
    return fail(ErrorCode::NotFound,
                fmt::format("no threshold is named '{}'; the nearest is '{}'", key.substr(0, 64), nearest(key)));
  if (!std::isfinite(value) || value < row->lowest || value > row->highest)
    return fail(ErrorCode::InvalidInput, fmt::format("{} must be {} to {}{}{}, not {}", row->key, row->lowest,
                                                     row->highest, row->unit.empty() ? "" : " ", row->unit, value));
  thresholds.*(row->field) = value;
  return {};
}

}  // namespace gpuhealth::health
