// SPDX-License-Identifier: Apache-2.0
// The one function of the telemetry room that rendering needs, for builds of this room alone.
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

std::string_view to_string(MetricsStatus status) {
  constexpr std::string_view names[] = {"ok", "truncated", "longer", "unknown-revision", "invalid"};
  return names[static_cast<std::size_t>(status)];
}

}  // namespace gpuhealth::telemetry
