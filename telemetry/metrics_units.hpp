// SPDX-License-Identifier: Apache-2.0
// From the units of a metrics table to the house's: °C, W, MHz, %, mV, rpm, GT/s. The decoder itself keeps raw values.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device.hpp"
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

// raw * metrics_scale(...) is in the house's unit; 1 for counts, bit masks and fan_pwm (whose range no source states).
// Activity of APUs varies with the firmware (quirk ApuActivityUnit): gpu_busy_percent is the better source there.
double metrics_scale(MetricsKey key, unsigned format, unsigned content, AsicFamily family);

// The speed that pcie_link_speed means, in GT/s. Null for what no link has, and for 2.5 GT/s on parts that report
// faster links so (quirk LinkSpeedGen5Clamp). Values 1..6 are generations (quirk LinkSpeedRawGeneration).
std::optional<double> link_speed_gts(std::uint64_t raw, AsicFamily family);

}  // namespace gpuhealth::telemetry
