// SPDX-License-Identifier: Apache-2.0
#include "health/limits.hpp"

#include <algorithm>
#include <array>

#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
using Reason = ThrottleReason;

constexpr double kColdestBelievedCelsius = -50;  // below it a sensor does not measure

constexpr std::array<HeatSensor, 3> kSensors = {{
    {"edge", R::TemperatureEdge, R::TemperatureEdgeCritical, R::TemperatureEdgeEmergency},
    {"junction", R::TemperatureJunction, R::TemperatureJunctionCritical, R::TemperatureJunctionEmergency},
    {"memory", R::TemperatureMemory, R::TemperatureMemoryCritical, R::TemperatureMemoryEmergency},
}};

struct ReasonRow {
  Reason reason;
  std::size_t sensor;  // in kSensors
};
constexpr std::array kReasons = std::to_array<ReasonRow>({
    {Reason::TempEdge, 0},
    {Reason::TempHotspot, 1},
    {Reason::TempHotspotG, 1},
    {Reason::TempHotspotM, 1},
    {Reason::TempHotspotGfx, 1},
    {Reason::TempHotspotSoc, 1},
    {Reason::TempMem, 2},
    {Reason::ThermalHbm, 2},
});

std::optional<double> believable(const Sample& sample, ReadingId id, double lowest, double highest) {
  const auto value = number(sample, id);
  return value && *value >= lowest && *value <= highest ? value : std::nullopt;
}

}  // namespace

std::span<const HeatSensor> heat_sensors() {
  return kSensors;
}

HeatState heat_of(const Sample& sample, const HeatSensor& sensor, const Thresholds& t) {
  const auto critical =
      believable(sample, sensor.critical, t.overheating_limit_lowest_c, t.overheating_limit_highest_c);
  const auto* reading = sample.find(sensor.value);
  if (!critical || reading == nullptr || reading->status == ReadingStatus::Unsupported) return {};
  const auto value = believable(sample, sensor.value, kColdestBelievedCelsius, t.overheating_limit_highest_c);
  if (!value) return {std::nullopt, true};
  auto emergency = believable(sample, sensor.emergency, *critical, t.overheating_limit_highest_c);
  return {Heat{&sensor, *value, *critical, emergency}, false};
}

const HeatSensor* sensor_of(ThrottleReason reason) {
  const auto it = std::ranges::find(kReasons, reason, &ReasonRow::reason);
  return it == kReasons.end() ? nullptr : &kSensors.at(it->sensor);
}

}  // namespace gpuhealth::health
