// SPDX-License-Identifier: Apache-2.0
// A temperature beside the limits that the card states for the same sensor (hwmon temp*_crit, temp*_emergency).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/sample.hpp"
#include "core/throttle.hpp"
#include "health/thresholds.hpp"

namespace gpuhealth::health {

struct HeatSensor {
  std::string_view name;  // "junction"
  ReadingId value;
  ReadingId critical;
  ReadingId emergency;
};
std::span<const HeatSensor> heat_sensors();

struct Heat {
  const HeatSensor* sensor = nullptr;
  double value = 0;
  double critical = 0;
  std::optional<double> emergency;
  [[nodiscard]] double headroom() const { return critical - value; }
};

struct HeatState {
  std::optional<Heat> heat;  // a believable value beside a believable limit
  bool hidden = false;       // the card states a limit and has the sensor, and the value cannot be read now
};
HeatState heat_of(const Sample& sample, const HeatSensor& sensor, const Thresholds& thresholds);

// The sensor that a thermal throttle reason speaks of; null where no limit is stated for it (regulators, liquid, skin).
const HeatSensor* sensor_of(ThrottleReason reason);

}  // namespace gpuhealth::health
