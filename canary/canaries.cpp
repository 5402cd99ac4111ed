// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "canary/measurement.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::array kCanaries = std::to_array<CanaryInfo>({
#define CANARY(id, canary, metric, tier, unit, better, floor, text) \
  {canary, metric, tier, unit, Better::better, floor, text},
#include "canary/canaries.def"
#undef CANARY
});

constexpr std::array kStatuses = std::to_array<std::pair<Status, std::string_view>>({
    {Status::Ok, "ok"},
    {Status::Wrong, "wrong"},
    {Status::Failed, "failed"},
    {Status::Timeout, "timeout"},
    {Status::Unsupported, "unsupported"},
    {Status::Busy, "busy"},
    {Status::Stuck, "stuck"},
    {Status::BackendFailed, "backend-failed"},
});

constexpr std::array kGates = std::to_array<std::pair<Gate, std::string_view>>({
    {Gate::Unknown, "unknown"},
    {Gate::Weak, "weak"},
    {Gate::Strong, "strong"},
});

template <class Table, class Key>
std::string_view name_in(const Table& table, Key key) {
  const auto it = std::ranges::find(table, key, [](const auto& row) { return row.first; });
  return it == std::end(table) ? std::string_view("unknown") : it->second;
}

template <class Key, class Table>
std::optional<Key> key_in(const Table& table, std::string_view name) {
  const auto it = std::ranges::find(table, name, [](const auto& row) { return row.second; });
  if (it == std::end(table)) return std::nullopt;
  return it->first;
}

}  // namespace

std::span<const CanaryInfo> all_canaries() {
  return kCanaries;
}

const CanaryInfo* find_canary(std::string_view canary, std::string_view metric) {
  const auto it = std::ranges::find_if(
      kCanaries, [&](const CanaryInfo& row) { return row.canary == canary && row.metric == metric; });
  return it == kCanaries.end() ? nullptr : &*it;
}

std::span<const CanaryInfo> metrics_of(std::string_view canary) {
  const auto first = std::ranges::find(kCanaries, canary, &CanaryInfo::canary);
  const auto last = std::find_if(first, kCanaries.end(), [&](const CanaryInfo& row) { return row.canary != canary; });
  return {first, last};
}

std::vector<std::string_view> canary_names(int up_to_tier) {
  std::vector<std::string_view> names;
  for (const auto& row : kCanaries) {
    if (row.tier <= up_to_tier && (names.empty() || names.back() != row.canary)) names.push_back(row.canary);
  }
  return names;
}

std::string_view to_string(Status status) {
  return name_in(kStatuses, status);
}
std::optional<Status> status_from(std::string_view name) {
  return key_in<Status>(kStatuses, name);
}
std::string_view to_string(Gate gate) {
  return name_in(kGates, gate);
}
std::optional<Gate> gate_from(std::string_view name) {
  return key_in<Gate>(kGates, name);
}

}  // namespace gpuhealth::canary
