// SPDX-License-Identifier: Apache-2.0
// Names of metrics, made from the table of readings by Prometheus' conventions: base units, the unit at the end,
// counters end in _total.
#pragma once

#include <string>

#include "core/reading.hpp"

namespace gpuhealth::exporter {

struct Metric {
  std::string name;  // "gpuhealth_temperature_edge_celsius"
  std::string help;
  double factor = 1;  // from the table's unit to the base unit
  bool counter = false;
};

// Of a plain reading: one family a row. RAS counters share one family, see families.cpp.
Metric metric_of(const ReadingInfo& reading);

inline constexpr const char* kRasFamily = "gpuhealth_ras_errors_total";

}  // namespace gpuhealth::exporter
