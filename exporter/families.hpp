// SPDX-License-Identifier: Apache-2.0
// The state as Prometheus' families: pure. What is not known has no series; nothing is invented to fill a gap.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "exporter/state.hpp"

namespace gpuhealth::exporter {

// By name. No two series of a family have the same labels, whatever the daemon says.
std::vector<prometheus::MetricFamily> families(const State& state, const OwnCost& cost);

}  // namespace gpuhealth::exporter
