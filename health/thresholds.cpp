// SPDX-License-Identifier: Apache-2.0
#include "health/thresholds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace gpuhealth::health {
namespace {

constexpr std::array kRows = std::to_array<ThresholdInfo>({
#define THRESHOLD(id, key, unit, value, lowest, highest, text, source) \
  {key, unit, value, lowest, highest, text, source, &Thresholds::id},
#include "health/thresholds.def"
#undef THRESHOLD
});

// Levenshtein: how many letters must be put in, taken out or replaced.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view key) {
  constexpr std::size_t longest = 64;  // a key is not compared beyond this: what is typed may be of any length
  const auto typed = key.substr(0, longest);
  return std::ranges::min(kRows, {}, [&](const ThresholdInfo& row) { return distance(typed, row.key); }).key;
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
