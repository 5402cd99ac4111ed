// SPDX-License-Identifier: Apache-2.0
// What a gpu_metrics table adds to a sample: readings that no file of its own says, and the throttle reasons.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "core/device.hpp"
#include "core/reading.hpp"
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

struct MetricsReadingRow {
  ReadingId id;
  MetricsKey key;
  double low;  // outside low..high the table holds no value of this part (drivers write 0 for "none" in places)
  double high;
};
// Several rows may name a reading; the first that has a value gives it.
std::span<const MetricsReadingRow> metrics_reading_table();

// The value in the house's unit, or nothing.
std::optional<double> metrics_reading(const MetricsView& view, const MetricsReadingRow& row, AsicFamily family);

// MI300 and newer count samples in which the firmware throttled; a share needs two tables.
class ResidencyShares {
 public:
  struct Share {
    ReadingId id;
    double percent;
  };
  // Shares since the last call; empty on the first, after a counter restarted, and where the table has none.
  std::span<const Share> update(const MetricsView& view);

 private:
  std::array<std::optional<std::uint64_t>, 6> last_{};
  std::array<Share, 5> shares_{};
};

}  // namespace gpuhealth::telemetry
