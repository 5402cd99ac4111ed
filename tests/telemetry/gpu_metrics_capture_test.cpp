// SPDX-License-Identifier: Apache-2.0
// What real cards wrote. The expected values were read off the bytes by hand.
#include <gtest/gtest.h>

#include "telemetry/gpu_metrics.hpp"
#include "tests/telemetry/decoder_support.hpp"

namespace gpuhealth::telemetry {
namespace {

struct Expected {
  const char* field;
  std::optional<double> value;
};
using Values = std::vector<std::optional<double>>;
constexpr auto kNone = std::nullopt;

void expect_values(const GpuMetrics& metrics, const std::vector<Expected>& rows) {
  for (const auto& row : rows) {
    const auto* field = metrics.find(row.field);
    ASSERT_NE(field, nullptr) << row.field;
    ASSERT_EQ(field->values.size(), 1U) << row.field;
    EXPECT_FALSE(field->array) << row.field;
    EXPECT_EQ(field->values[0], row.value) << row.field;
  }
}

TEST(GpuMetricsCapture, Navi32DesktopCardAtIdle) {
  CAPTURES_OR_RETURN(dir);
  const auto m = decode_gpu_metrics(read_bytes(dir / "gpu_metrics/lact-rx7800xt-v1.3/gpu_metrics"));
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.note, "");
  EXPECT_EQ(m.format, 1U);
  EXPECT_EQ(m.content, 3U);
  EXPECT_EQ(m.structure_size, 120U);
  EXPECT_EQ(m.fields.size(), 43U);
  expect_values(m, {{"structure_size", 120},
                    {"format_revision", 1},
                    {"content_revision", 3},
                    {"temperature_edge", 24},
                    {"temperature_hotspot", 31},
                    {"temperature_mem", 48},
                    {"temperature_vrgfx", 34},
                    {"temperature_vrsoc", 32},
                    {"temperature_vrmem", 34},
                    {"average_gfx_activity", 24},
                    {"average_umc_activity", 0},
                    {"average_mm_activity", 0},
                    {"average_socket_power", 32},
                    {"energy_accumulator", 0},
                    {"system_clock_counter", 2905311021620.0},
                    {"average_gfxclk_frequency", 2011},
                    {"average_socclk_frequency", kNone},
                    {"average_uclk_frequency", 909},
                    {"average_vclk0_frequency", 25},
                    {"average_dclk1_frequency", 25},
                    {"current_gfxclk", 2011},
                    {"current_socclk", 750},
                    {"current_uclk", 456},
                    {"throttle_status", 0},
                    {"current_fan_speed", 868},
                    {"pcie_link_width", 16},
                    {"pcie_link_speed", 160},
                    {"padding", kNone},
                    {"gfx_activity_acc", kNone},
                    {"mem_activity_acc", kNone},
                    {"firmware_timestamp", kNone},
                    {"voltage_soc", 768},
                    {"voltage_gfx", 985},
                    {"voltage_mem", 704},
                    {"padding1", kNone},
                    {"indep_throttle_status", 0}});
  const auto* hbm = m.find("temperature_hbm");
  ASSERT_NE(hbm, nullptr);
  EXPECT_TRUE(hbm->array);
  EXPECT_EQ(hbm->values, (Values{kNone, kNone, kNone, kNone}));
}

TEST(GpuMetricsCapture, Navi33LaptopAtIdleSetsItsHotspotBit) {
  CAPTURES_OR_RETURN(dir);
  for (const auto* path :
       {"gpu_metrics/lact-rx7600s-v1.3/gpu_metrics", "sysfs/lact-rx7600s/card1/device/gpu_metrics"}) {
    const auto m = decode_gpu_metrics(read_bytes(dir / path));
    EXPECT_EQ(m.status, MetricsStatus::Ok);
    expect_values(m, {{"temperature_edge", 53},
                      {"temperature_hotspot", 54},
                      {"temperature_mem", 60},
                      {"temperature_vrgfx", 0},
                      {"average_gfx_activity", 0},
                      {"average_socket_power", 1},
                      {"average_gfxclk_frequency", 0},
                      {"average_uclk_frequency", 53},
                      {"current_gfxclk", 1200},
                      {"current_socclk", 711},
                      {"current_uclk", 96},
                      {"throttle_status", 2},
                      {"current_fan_speed", 0},
                      {"pcie_link_width", 8},
                      {"pcie_link_speed", 160},
                      {"voltage_soc", 727},
                      {"voltage_gfx", 0},
                      {"voltage_mem", 687},
                      {"indep_throttle_status", 68719476736.0}});
  }
}

TEST(GpuMetricsCapture, Navi48AtLightLoad) {
  CAPTURES_OR_RETURN(dir);
  for (const auto* path : {"gpu_metrics/lact-rx9070-v1.3/gpu_metrics", "sysfs/lact-rx9070/card1/device/gpu_metrics"}) {
    const auto m = decode_gpu_metrics(read_bytes(dir / path));
    EXPECT_EQ(m.status, MetricsStatus::Ok);
    expect_values(m, {{"temperature_edge", 48},
                      {"temperature_hotspot", 52},
                      {"temperature_mem", 72},
                      {"temperature_vrgfx", 46},
                      {"temperature_vrsoc", 49},
                      {"temperature_vrmem", 54},
                      {"average_gfx_activity", 25},
                      {"average_socket_power", 49},
                      {"average_gfxclk_frequency", 900},
                      {"average_uclk_frequency", 2238},
                      {"current_gfxclk", 900},
                      {"current_socclk", 1200},
                      {"current_uclk", 1124},
                      {"throttle_status", 0},
                      {"current_fan_speed", 1944},
                      {"pcie_link_width", 16},
                      {"pcie_link_speed", 160},
                      {"voltage_soc", 842},
                      {"voltage_gfx", 790},
                      {"voltage_mem", 1345}});
  }
}

// Its values agree with MangoHud's own test of the file: 64 %, 33 W, 2165 MHz, 1000 MHz, 36 C.
TEST(GpuMetricsCapture, MangoHudsDiscreteCard) {
  CAPTURES_OR_RETURN(dir);
  const auto m = decode_gpu_metrics(read_bytes(dir / "gpu_metrics/mangohud-dgpu-v1.3/gpu_metrics"));
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  expect_values(m, {{"average_gfx_activity", 64},
                    {"average_umc_activity", 6},
                    {"average_socket_power", 33},
                    {"energy_accumulator", 3284043806.0},
                    {"average_gfxclk_frequency", 2173},
                    {"current_gfxclk", 2165},
                    {"current_socclk", 800},
                    {"current_uclk", 1000},
                    {"temperature_edge", 36},
                    {"temperature_hotspot", 49},
                    {"throttle_status", 0},
                    {"pcie_link_width", 8},
                    {"pcie_link_speed", 80},
                    {"voltage_soc", 987},
                    {"voltage_gfx", 1025},
                    {"voltage_mem", 1356}});
}

TEST(GpuMetricsCapture, Mi100TenSecondsApart) {
  CAPTURES_OR_RETURN(dir);
  const auto folder = dir / "gpu_metrics/mi100-two-samples-10s-v1.3";
  const auto first = decode_gpu_metrics(read_bytes(folder / "gpu_metrics.t0"));
  const auto second = decode_gpu_metrics(read_bytes(folder / "gpu_metrics.t10"));
  expect_values(first, {{"temperature_edge", 45},
                        {"temperature_hotspot", 49},
                        {"temperature_mem", 45},
                        {"temperature_vrgfx", 46},
                        {"temperature_vrsoc", 45},
                        {"temperature_vrmem", 42},
                        {"average_socket_power", 36},
                        {"energy_accumulator", 59231},
                        {"system_clock_counter", 1655390401568.0},
                        {"average_gfxclk_frequency", 300},
                        {"average_socclk_frequency", 1000},
                        {"average_uclk_frequency", 1200},
                        {"average_vclk0_frequency", 187},
                        {"average_vclk1_frequency", kNone},
                        {"current_gfxclk", 300},
                        {"current_uclk", 0},
                        {"pcie_link_width", 16},
                        {"pcie_link_speed", 160},
                        {"voltage_gfx", kNone},
                        {"indep_throttle_status", 0}});
  expect_values(second, {{"temperature_vrmem", 43},
                         {"average_socket_power", 35},
                         {"energy_accumulator", 59601},
                         {"system_clock_counter", 1665675829673.0}});
}

TEST(GpuMetricsCapture, PhoenixApuReportsCentiDegrees) {
  CAPTURES_OR_RETURN(dir);
  for (const auto* path :
       {"gpu_metrics/lact-phoenix-v2.1/gpu_metrics", "sysfs/lact-phoenix/card1/device/gpu_metrics"}) {
    const auto m = decode_gpu_metrics(read_bytes(dir / path));
    EXPECT_EQ(m.status, MetricsStatus::Ok);
    EXPECT_EQ(m.format, 2U);
    EXPECT_EQ(m.content, 1U);
    EXPECT_EQ(m.fields.size(), 32U);
    expect_values(m, {{"temperature_gfx", 2500},
                      {"temperature_soc", 2737},
                      {"average_gfx_activity", 79},
                      {"average_mm_activity", 0},
                      {"system_clock_counter", 406209264197600.0},
                      {"average_socket_power", 3401},
                      {"average_cpu_power", kNone},
                      {"average_soc_power", 743},
                      {"average_gfx_power", 585},
                      {"average_gfxclk_frequency", 800},
                      {"average_socclk_frequency", 400},
                      {"average_vclk_frequency", 800},
                      {"current_gfxclk", kNone},
                      {"current_dclk", kNone},
                      {"throttle_status", 0},
                      {"fan_pwm", kNone}});
    EXPECT_EQ(m.find("temperature_core")->values, (Values{2537, 2350, 2500, 2337, 2512, 2375, 2587, 2375}));
    EXPECT_EQ(m.find("temperature_l3")->values, (Values{2525, kNone}));
    EXPECT_EQ(m.find("average_core_power")->values, (Values{1, 0, 0, 0, 0, 1, 0, 9}));
    EXPECT_EQ(m.find("padding")->values, (Values{kNone, kNone, kNone}));
    EXPECT_EQ(m.find("indep_throttle_status"), nullptr);
  }
}

// MangoHud expects of it: 81 C, SoC 71 C, CPU 80 C, 6.161 W, 9.235 W, 1040 MHz, 687 MHz, power-throttled.
TEST(GpuMetricsCapture, MangoHudsApu) {
  CAPTURES_OR_RETURN(dir);
  const auto m = decode_gpu_metrics(read_bytes(dir / "gpu_metrics/mangohud-apu-v2.2/gpu_metrics"));
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.structure_size, 128U);
  expect_values(m, {{"temperature_gfx", 8175},
                    {"temperature_soc", 7100},
                    {"average_gfx_activity", 100},
                    {"average_socket_power", 18844},
                    {"average_cpu_power", 9235},
                    {"average_soc_power", 1083},
                    {"average_gfx_power", 6161},
                    {"current_gfxclk", 1040},
                    {"current_socclk", 600},
                    {"current_uclk", 687},
                    {"current_fclk", 687},
                    {"current_vclk", 600},
                    {"current_dclk", 400},
                    {"throttle_status", 6},
                    {"fan_pwm", kNone},
                    {"indep_throttle_status", 96}});
  EXPECT_EQ(m.find("temperature_core")->values, (Values{8050, 7425, 7725, 7350, kNone, kNone, kNone, kNone}));
  EXPECT_EQ(m.find("current_l3clk")->values, (Values{3475, kNone}));
}

TEST(GpuMetricsCapture, FilePaddedToAPageIsDecodedByItsHeader) {
  CAPTURES_OR_RETURN(dir);
  const auto bytes = read_bytes(dir / "sysfs/lact-rx6900xt/card0/device/gpu_metrics");
  ASSERT_EQ(bytes.size(), 4096U);
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Longer);
  EXPECT_EQ(m.note, "the header states 120 bytes, the file has 4096");
  EXPECT_EQ(m.structure_size, 120U);
  EXPECT_EQ(m.fields.size(), 43U);
  expect_values(m, {{"temperature_edge", 56},
                    {"temperature_hotspot", 59},
                    {"temperature_mem", 54},
                    {"average_gfx_activity", 3},
                    {"average_socket_power", 36},
                    {"energy_accumulator", 17691682},
                    {"system_clock_counter", 533474291244.0},
                    {"average_gfxclk_frequency", 41},
                    {"current_gfxclk", 500},
                    {"current_socclk", 800},
                    {"current_uclk", 1000},
                    {"pcie_link_width", 16},
                    {"pcie_link_speed", 160},
                    {"voltage_gfx", 775},
                    {"voltage_mem", 1356},
                    {"indep_throttle_status", 0}});
}

// From the decoded text of smi-text/navi10-gpumetrics-decoded: nonsense of an old driver, kept exact.
TEST(GpuMetricsCapture, Navi10NonsenseEnergyIsKeptToTheLastDigit) {
  const auto bytes = TableBuilder(120, 1, 3)
                         .put(4, 2, 53)
                         .put(22, 2, 12)
                         .put(24, 8, 6294297477348589567U)
                         .put(32, 8, 142426363985407644U)
                         .put(56, 2, 1266)
                         .bytes();
  const auto m = decode_gpu_metrics(bytes);
  expect_values(m, {{"temperature_edge", 53}, {"average_socket_power", 12}, {"current_socclk", 1266}});
  EXPECT_EQ(m.find("energy_accumulator")->raw[0], 6294297477348589567U);
  EXPECT_EQ(m.find("system_clock_counter")->raw[0], 142426363985407644U);
}

}  // namespace
}  // namespace gpuhealth::telemetry
