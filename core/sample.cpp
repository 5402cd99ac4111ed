// SPDX-License-Identifier: Apache-2.0
#include "core/sample.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth {

std::string_view to_string(PowerState state) {
  constexpr std::array<std::string_view, 5> names = {"active", "suspended", "suspending", "resuming", "unknown"};
  return names.at(static_cast<std::size_t>(state));
}

const Reading* Sample::find(ReadingId id) const {
  const auto it = std::ranges::lower_bound(readings, id, {}, &Reading::id);
  return it != readings.end() && it->id == id ? &*it : nullptr;
}

std::optional<double> Sample::value(ReadingId id) const {
  const Reading* reading = find(id);
  if (reading == nullptr || reading->status != ReadingStatus::Valid) return std::nullopt;
  return reading->value;
}

}  // namespace gpuhealth
