// SPDX-License-Identifier: Apache-2.0
#include "core/condition.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth {
namespace {

constexpr std::array kRows = std::to_array<ConditionInfo>({
#define CONDITION(id, type, severity, title, meaning, advice) \
  {ConditionType::id, type, Severity::severity, title, meaning, advice},
#include "core/condition.def"
#undef CONDITION
});
constexpr std::array<std::string_view, 3> kSeverities = {"info", "warning", "critical"};
constexpr std::array<std::string_view, 3> kStates = {"raised", "confirmed", "cleared"};

template <class Enum, class Names>
std::optional<Enum> from_name(const Names& names, std::string_view name) {
  const auto it = std::ranges::find(names, name);
  if (it == names.end()) return std::nullopt;
  return static_cast<Enum>(it - names.begin());
}

}  // namespace

std::string_view to_string(Severity severity) {
  return kSeverities.at(static_cast<std::size_t>(severity));
}
std::optional<Severity> severity_from(std::string_view name) {
  return from_name<Severity>(kSeverities, name);
}
std::string_view to_string(ConditionState state) {
  return kStates.at(static_cast<std::size_t>(state));
}
std::optional<ConditionState> condition_state_from(std::string_view name) {
  return from_name<ConditionState>(kStates, name);
}

std::span<const ConditionInfo> all_conditions() {
  return kRows;
}
const ConditionInfo& info(ConditionType type) {
  return kRows.at(static_cast<std::size_t>(type));
}
std::optional<ConditionType> condition_type_from(std::string_view name) {
  const auto it = std::ranges::find(kRows, name, &ConditionInfo::name);
  if (it == kRows.end()) return std::nullopt;
  return it->type;
}

std::string condition_id(ConditionType type, std::string_view device, WallTime since) {
  return std::string(info(type).name) + "-" + std::string(device) + "-" +
         std::to_string(to_microseconds(since) / 1'000'000);
}

}  // namespace gpuhealth
