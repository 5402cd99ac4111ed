// SPDX-License-Identifier: Apache-2.0
#include "exporter/names.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpuhealth::exporter {
namespace {

Metric of(std::string_view name) {
  return metric_of(*find_reading(name));
}

TEST(MetricNames, EndInTheirBaseUnit) {
  EXPECT_EQ(of("temperature.edge").name, "gpuhealth_temperature_edge_celsius");
  EXPECT_EQ(of("power.cap_default").name, "gpuhealth_power_cap_default_watts");
  EXPECT_EQ(of("clock.gfx").name, "gpuhealth_clock_gfx_hertz");
  EXPECT_EQ(of("voltage.gfx").name, "gpuhealth_voltage_gfx_volts");
  EXPECT_EQ(of("utilization.gfx").name, "gpuhealth_utilization_gfx_ratio");
  EXPECT_EQ(of("vram.total").name, "gpuhealth_vram_total_bytes");
  EXPECT_EQ(of("pcie.speed").name, "gpuhealth_pcie_speed_transfers_per_second");
  EXPECT_EQ(of("pcie.width").name, "gpuhealth_pcie_width_lanes");
}

TEST(MetricNames, SayAUnitOnce) {
  EXPECT_EQ(of("fan.rpm").name, "gpuhealth_fan_rpm");
  EXPECT_EQ(of("fan.percent").name, "gpuhealth_fan_ratio");
  EXPECT_EQ(of("fan.rpm_max").name, "gpuhealth_fan_rpm_max_rpm");
}

TEST(MetricNames, CountersAndOnlyCountersEndInTotal) {
  EXPECT_EQ(of("pcie.replays").name, "gpuhealth_pcie_replays_total");
  EXPECT_TRUE(of("pcie.replays").counter);
  EXPECT_EQ(of("vram.bad_pages").name, "gpuhealth_vram_bad_pages");
  EXPECT_FALSE(of("vram.bad_pages").counter);
  EXPECT_FALSE(of("pcie.answers").counter);
}

TEST(MetricNames, FactorsLeadToTheBaseUnit) {
  EXPECT_DOUBLE_EQ(of("clock.gfx").factor, 1'000'000);
  EXPECT_DOUBLE_EQ(of("voltage.gfx").factor, 0.001);
  EXPECT_DOUBLE_EQ(of("fan.percent").factor, 0.01);
  EXPECT_DOUBLE_EQ(of("pcie.speed").factor, 1'000'000'000);
  EXPECT_DOUBLE_EQ(of("temperature.edge").factor, 1);
}

TEST(MetricNames, NoTwoReadingsShareOne) {
  std::set<std::string> seen;
  for (const auto& row : all_readings()) {
    if (row.name.starts_with("ras.")) continue;
    EXPECT_TRUE(seen.insert(metric_of(row).name).second) << row.name;
    EXPECT_FALSE(metric_of(row).help.empty());
  }
}

}  // namespace
}  // namespace gpuhealth::exporter
