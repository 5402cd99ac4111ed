// SPDX-License-Identifier: Apache-2.0
#include "exporter/names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace gpuhealth::exporter {
namespace {

struct UnitRow {
  Unit unit;
  std::string_view suffix;
  double factor;
};
// rpm stays: there is no base unit that anybody reads a fan in, and node_exporter has it too.
constexpr auto kUnits = std::to_array<UnitRow>({
    {Unit::Celsius, "_celsius", 1},
    {Unit::Watt, "_watts", 1},
    {Unit::Megahertz, "_hertz", 1e6},
    {Unit::Millivolt, "_volts", 1e-3},
    {Unit::Rpm, "_rpm", 1},
    {Unit::Percent, "_ratio", 1e-2},
    {Unit::Byte, "_bytes", 1},
    {Unit::GigatransferPerSecond, "_transfers_per_second", 1e9},
    {Unit::Lane, "_lanes", 1},
    {Unit::Count, "", 1},
});

// Of the rows with the unit Count, those that only grow; the others are states or amounts.
constexpr auto kCounters = std::to_array<ReadingId>(
    {ReadingId::PcieReplays, ReadingId::AerCorrectable, ReadingId::AerNonfatal, ReadingId::AerFatal});

}  // namespace

Metric metric_of(const ReadingInfo& reading) {
  Metric out;
  out.name = "gpuhealth_" + std::string(reading.name);
  std::ranges::replace(out.name, '.', '_');
  // "fan.rpm" and "fan.percent" have their unit in their name already, which the suffix then says.
  for (const std::string_view said : {"_rpm", "_percent"}) {
    if (out.name.ends_with(said)) out.name.resize(out.name.size() - said.size());
  }
  const auto* row = std::ranges::find(kUnits, reading.unit, &UnitRow::unit);
  out.name += row->suffix;
  out.factor = row->factor;
  out.counter = std::ranges::find(kCounters, reading.id) != kCounters.end();
  if (out.counter) out.name += "_total";
  out.help = std::string(reading.text);
  return out;
}

}  // namespace gpuhealth::exporter
