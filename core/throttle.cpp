// SPDX-License-Identifier: Apache-2.0
#include "core/throttle.hpp"

#include <array>

namespace gpuhealth {
namespace {

constexpr std::array kRows = std::to_array<ThrottleInfo>({
#define THROTTLE(id, name, kind, text) {ThrottleReason::id, name, ThrottleKind::kind, text},
#include "core/throttle.def"
#undef THROTTLE
});

}  // namespace

std::span<const ThrottleInfo> all_throttle_reasons() {
  return kRows;
}

std::optional<ThrottleReason> throttle_reason_from(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.reason;
  }
  return std::nullopt;
}

ThrottleSet ThrottleSet::of_kind(ThrottleKind kind) const {
  ThrottleSet out;
  for (const auto& row : kRows) {
    if (row.kind == kind && contains(row.reason)) out.insert(row.reason);
  }
  return out;
}

}  // namespace gpuhealth
