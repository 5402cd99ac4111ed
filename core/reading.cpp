// SPDX-License-Identifier: Apache-2.0
#include "core/reading.hpp"

#include <algorithm>

namespace gpuhealth {
namespace {

constexpr std::array kUnitNames =
    std::to_array<std::string_view>({"C", "W", "MHz", "mV", "rpm", "%", "bytes", "GT/s", "lanes", "count"});
constexpr std::array kStatusNames = std::to_array<std::string_view>(
    {"valid", "unsupported", "asleep", "in-reset", "smu-dead", "unreadable", "stuck", "stale", "implausible"});

constexpr std::array<std::string_view, 3> kRasKindNames = {"correctable", "uncorrectable", "deferred"};
constexpr std::array<std::string_view, 3> kRasKindTexts = {"memory or logic errors corrected", "errors not corrected",
                                                           "errors found and not yet consumed (poison)"};

struct Table {
  std::array<std::string, kRasReadingCount> ras_names;  // what the RAS rows' names view
  std::vector<ReadingInfo> rows;
  std::vector<std::uint16_t> by_name;  // indexes into rows, sorted by name

  Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
};

Table::Table() {
#define READING(id, name, unit, keep, text) rows.push_back({ReadingId::id, name, Unit::unit, Keep::keep, text});
#include "core/readings.def"
#undef READING
  for (std::size_t block = 0; block < kRasBlocks.size(); ++block) {
    for (std::size_t kind = 0; kind < kRasKindNames.size(); ++kind) {
      auto& name = ras_names[block * 3 + kind];
      name = "ras." + std::string(kRasBlocks[block]) + "." + std::string(kRasKindNames[kind]);
      rows.push_back(
          {ras_reading(block, static_cast<RasKind>(kind)), name, Unit::Count, Keep::History, kRasKindTexts[kind]});
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) by_name.push_back(static_cast<std::uint16_t>(i));
  std::ranges::sort(by_name, {}, [this](std::uint16_t i) { return rows[i].name; });
}

const Table& table() {
  static const Table built;
  return built;
}

}  // namespace

std::string_view to_string(Unit unit) {
  return kUnitNames.at(static_cast<std::size_t>(unit));
}

std::string_view to_string(ReadingStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

std::optional<ReadingStatus> reading_status_from(std::string_view name) {
  const auto it = std::ranges::find(kStatusNames, name);
  if (it == kStatusNames.end()) return std::nullopt;
  return static_cast<ReadingStatus>(it - kStatusNames.begin());
}

std::span<const ReadingInfo> all_readings() {
  return table().rows;
}

const ReadingInfo* find_reading(ReadingId id) {
  const auto number = static_cast<std::size_t>(id);
  const auto first_ras = static_cast<std::size_t>(ReadingId::RasFirst);
  if (number < kPlainReadingCount) return &table().rows[number];
  if (number >= first_ras && number < first_ras + kRasReadingCount)
    return &table().rows[kPlainReadingCount + number - first_ras];
  return nullptr;
}

const ReadingInfo* find_reading(std::string_view name) {
  const auto& t = table();
  const auto it = std::ranges::lower_bound(t.by_name, name, {}, [&](std::uint16_t i) { return t.rows[i].name; });
  if (it == t.by_name.end() || t.rows[*it].name != name) return nullptr;
  return &t.rows[*it];
}

}  // namespace gpuhealth
