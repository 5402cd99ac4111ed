// SPDX-License-Identifier: Apache-2.0
// Real cards: trees that other people captured, laid out as a machine. The numbers were read from the files by eye.
#include "tests/support/captures.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "telemetry/inspect.hpp"
#include "telemetry/intel.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;

struct Expected {
  std::string reading;
  double value;
};

class Captures : public ::testing::Test {
 protected:
  void SetUp() override {
    CAPTURES_OR_RETURN(dir);
    captures_ = dir;
  }

  Inspection look_at(const std::vector<std::string>& names) {
    std::string command =
        "/usr/bin/python3 '" + (captures_.parent_path() / "tools/mksysroot").string() + "' '" + root_.string() + "'";
    for (const auto& name : names) command += " '" + (captures_ / name).string() + "'";
    EXPECT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
    auto seen = inspect(root_.string());
    EXPECT_TRUE(seen) << seen.error().text;
    return seen ? std::move(*seen) : Inspection{};
  }

  Inspected card(const std::string& name) {
    auto seen = look_at({name});
    EXPECT_EQ(seen.devices.size(), 1u) << name;
    return seen.devices.empty() ? Inspected{} : std::move(seen.devices.front());
  }

  static void expect(const Inspected& card, const std::vector<Expected>& values) {
    for (const auto& e : values) {
      const auto* row = find_reading(e.reading);
      ASSERT_NE(row, nullptr) << e.reading;
      const auto value = card.sample.value(row->id);
      ASSERT_TRUE(value) << e.reading << " has no value";
      EXPECT_NEAR(*value, e.value, 1e-6) << e.reading;
    }
  }
  static void expect_unsupported(const Inspected& card, const std::vector<std::string>& names) {
    for (const auto& name : names) {
      const auto* reading = card.sample.find(find_reading(name)->id);
      EXPECT_TRUE(reading == nullptr || reading->status == ReadingStatus::Unsupported) << name;
    }
  }

  test::TempDir root_;
  fs::path captures_;
};

TEST_F(Captures, R7_240OfTheSouthernIslands) {
  const auto card = this->card("sysfs/lact-r7-240");
  EXPECT_EQ(to_string(card.device.pci), "0000:01:00.0");
  EXPECT_EQ(card.device.device_id, 0x6617);
  EXPECT_EQ(card.device.subsystem_vendor, 0x1787);
  EXPECT_EQ(card.device.subsystem_device, 0x012f);
  EXPECT_EQ(card.device.driver, "amdgpu");
  EXPECT_EQ(card.device.vbios_version, "13-C86901_216");
  expect(card, {{"temperature.edge", 52},
                {"temperature.edge_critical", 120},
                {"clock.gfx", 400},
                {"clock.memory", 1150},
                {"pcie.speed", 5},
                {"pcie.width", 4},
                {"pcie.speed_max", 8},
                {"pcie.width_max", 8},
                {"aer.correctable", 0},
                {"aer.fatal", 0}});
  expect_unsupported(card, {"power.average", "power.input", "power.cap", "voltage.gfx", "utilization.gfx",
                            "temperature.junction", "fan.rpm", "clock.soc"});
  EXPECT_FALSE(card.metrics);
}

TEST_F(Captures, Rx580OfThePolarisGeneration) {
  const auto card = this->card("sysfs/lact-rx580");
  EXPECT_EQ(card.device.family, AsicFamily::VolcanicIslands);
  EXPECT_EQ(card.device.revision, 0xe7);
  expect(card, {{"temperature.edge", 44},
                {"temperature.edge_critical", 94},
                {"power.average", 41.045},
                {"power.cap", 155},
                {"power.cap_default", 155},
                {"power.cap_max", 201},
                {"power.cap_min", 0},
                {"fan.rpm", 595},
                {"fan.percent", 35 * 100.0 / 255},
                {"voltage.gfx", 975},
                {"clock.gfx", 798.08},
                {"clock.memory", 1750},
                {"clock.gfx_min", 300},
                {"clock.gfx_max", 1366},
                {"utilization.gfx", 11},
                {"utilization.memory", 2},
                {"pcie.replays", 3}});
  expect_unsupported(card, {"power.input", "temperature.junction", "temperature.memory", "pcie.speed"});
  EXPECT_EQ(card.sample.power_profile, "3D_FULL_SCREEN");
}

TEST_F(Captures, Vega56BehindNoVisibleSwitch) {
  const auto card = this->card("sysfs/lact-vega56");
  expect(card, {{"temperature.edge", 38},
                {"temperature.junction", 38},
                {"temperature.memory", 39},
                {"temperature.edge_critical", 85},
                {"temperature.junction_critical", 105},
                {"temperature.memory_emergency", 100},
                {"power.average", 8},
                {"power.cap", 260},
                {"power.cap_max", 390},
                {"fan.rpm", 5},
                {"voltage.gfx", 762},
                {"clock.gfx", 26},
                {"clock.memory", 167},
                {"clock.soc", 600},
                {"vram.total", 8573157376.0},
                {"vram.used", 16613376},
                {"gtt.used", 12337152},
                {"pcie.speed", 8},
                {"pcie.width", 16},
                {"pcie.replays", 0},
                {"aer.correctable", 0}});
  EXPECT_EQ(card.device.vram_vendor, "hynix");
}

TEST_F(Captures, Rx5500XtHasNoMemorySensorAndItsZeroIsNotATemperature) {
  const auto card = this->card("sysfs/lact-rx5500xt");
  expect(card, {{"temperature.edge", 48},
                {"temperature.junction", 48},
                {"power.average", 16},
                {"power.cap", 130},
                {"power.cap_min", 65},
                {"power.cap_max", 156},
                {"fan.rpm", 0},
                {"voltage.gfx", 700},
                {"clock.gfx", 31},
                {"clock.memory", 875},
                {"clock.soc", 1085},
                {"utilization.gfx", 0},
                {"pcie.speed", 16},
                {"pcie.width", 16}});
  EXPECT_EQ(card.sample.find(ReadingId::TemperatureMemory)->status, ReadingStatus::Implausible);
}

TEST_F(Captures, Rx5700XtWithoutAStarInItsClockTable) {
  const auto card = this->card("sysfs/lact-rx5700xt");
  EXPECT_EQ(to_string(card.device.pci), "0000:28:00.0");
  expect(card, {{"temperature.edge", 58},
                {"temperature.memory", 62},
                {"power.average", 29},
                {"power.cap", 220},
                {"power.cap_max", 330},
                {"fan.rpm", 29},
                {"voltage.gfx", 1100},
                {"clock.gfx", 10},
                {"clock.memory", 875},
                {"clock.soc", 950},
                {"clock.gfx_max", 1900}});
}

TEST_F(Captures, Rx6600WithACapThatSomebodyRaised) {
  const auto card = this->card("sysfs/lact-rx6600");
  expect(card, {{"temperature.edge", 28},
                {"temperature.junction", 28},
                {"temperature.memory", 26},
                {"power.average", 3},
                {"power.cap", 120},
                {"power.cap_default", 100},
                {"power.cap_min", 94},
                {"fan.rpm", 1395},
                {"fan.percent", 0},
                {"clock.gfx", 20},
                {"clock.soc", 640}});
  EXPECT_FALSE(card.device.other_names.empty()) << "73ff serves several products, and this tree names no revision";
}

TEST_F(Captures, Rx6900XtWhoseFilesArePaddedWithNuls) {
  const auto card = this->card("sysfs/lact-rx6900xt");
  EXPECT_EQ(card.device.unique_id, "946d7e1ef9b172dd");
  EXPECT_EQ(card.device.id(), "uid-946d7e1ef9b172dd");
  EXPECT_EQ(card.device.vbios_version, "113-D4121EXT-CO1");
  expect(card, {{"temperature.edge", 56},
                {"temperature.junction", 59},
                {"temperature.memory", 54},
                {"power.average", 36},
                {"power.cap", 289},
                {"power.cap_max", 332},
                {"fan.rpm", 0},
                {"voltage.gfx", 775},
                {"clock.gfx", 500},
                {"clock.memory", 1000},
                {"clock.soc", 800},
                {"clock.fabric", 1302},
                {"utilization.gfx", 3},
                {"utilization.memory", 0},
                {"vram.total", 17163091968.0},
                {"vram.used", 668274688},
                {"gtt.total", 16786171904.0},
                {"gtt.used", 62369792},
                {"temperature.vr_gfx", 49}});
  expect_unsupported(card, {"pcie.replays"});  // a constant 0 on this generation, not a count
  ASSERT_TRUE(card.metrics);
  EXPECT_EQ(card.metrics->structure_size, 120u);
  EXPECT_EQ(card.metrics->status, MetricsStatus::Longer);
}

TEST_F(Captures, Rx7600SOfALaptopWithItsGraphicsOff) {
  const auto card = this->card("sysfs/lact-rx7600s");
  expect(card, {{"temperature.edge", 53},
                {"temperature.junction", 54},
                {"temperature.memory", 60},
                {"power.average", 1},
                {"power.cap", 95},
                {"power.cap_max", 95},
                {"fan.rpm", 0},
                {"voltage.gfx", 0},
                {"clock.gfx", 0},
                {"clock.memory", 96},
                {"clock.soc", 711},
                {"pcie.width", 8}});
  EXPECT_EQ(card.sample.performance_level, "manual");
  EXPECT_EQ(card.sample.power_profile, "VR");
  EXPECT_TRUE(card.sample.throttle.empty());
}

TEST_F(Captures, Rx7800Xt) {
  const auto card = this->card("sysfs/lact-rx7800xt");
  expect(card, {{"temperature.edge", 24},
                {"temperature.junction", 31},
                {"temperature.memory", 48},
                {"temperature.vr_gfx", 34},
                {"power.average", 32},
                {"power.cap", 236},
                {"power.cap_min", 212},
                {"power.cap_max", 280},
                {"fan.rpm", 868},
                {"voltage.gfx", 985},
                {"voltage.soc", 768},
                {"clock.gfx", 2011},
                {"clock.memory", 456},
                {"clock.soc", 750},
                {"utilization.gfx", 2}});
  EXPECT_TRUE(card.sample.throttle.empty());
}

TEST_F(Captures, Rx7900XtxAtIdle) {
  const auto card = this->card("sysfs/lact-rx7900xtx");
  EXPECT_EQ(card.device.family, AsicFamily::Navi3x);
  expect(card, {{"temperature.edge", 53},
                {"temperature.junction", 61},
                {"temperature.memory", 68},
                {"power.average", 68},
                {"power.cap", 290},
                {"power.cap_min", 261},
                {"power.cap_max", 333},
                {"fan.rpm", 0},
                {"voltage.gfx", 686},
                {"clock.gfx", 31},
                {"clock.memory", 1249},
                {"clock.gfx_min", 500},
                {"clock.gfx_max", 2219},
                {"utilization.gfx", 3},
                {"pcie.speed", 16},
                {"pcie.width", 16}});
}

TEST_F(Captures, Rx9070OnAGen5Link) {
  const auto card = this->card("sysfs/lact-rx9070");
  EXPECT_EQ(card.device.family, AsicFamily::Navi4x);
  EXPECT_EQ(card.device.gfx, "gfx1201");
  expect(card, {{"temperature.edge", 48},
                {"temperature.junction", 52},
                {"temperature.memory", 72},
                {"power.average", 49},
                {"power.cap", 200},
                {"power.cap_default", 220},
                {"power.cap_min", 0},
                {"power.cap_max", 245},
                {"fan.rpm", 1944},
                {"voltage.gfx", 790},
                {"clock.gfx", 900},
                {"clock.memory", 1124},
                {"clock.soc", 1200},
                {"utilization.gfx", 25},
                {"pcie.speed", 32},
                {"pcie.width", 16}});
  EXPECT_TRUE(card.sample.throttle.empty());
}

TEST_F(Captures, PhoenixApuOfALaptop) {
  const auto card = this->card("sysfs/lact-phoenix");
  EXPECT_EQ(to_string(card.device.pci), "0000:64:00.0");
  EXPECT_EQ(card.device.subsystem_vendor, 0x17aa);
  EXPECT_TRUE(is_apu(card.device.family));
  expect(card, {{"temperature.edge", 25},
                {"power.average", 3.103},
                {"power.input", 3.142},
                {"clock.gfx", 800},
                {"clock.memory", 400},
                {"clock.soc", 400},
                {"clock.fabric", 400},
                {"clock.gfx_max", 2700},
                {"voltage.gfx", 814},
                {"voltage.soc", 615},
                {"utilization.gfx", 0}});
  expect_unsupported(card, {"temperature.junction", "temperature.memory", "power.cap", "fan.rpm", "fan.percent",
                            "temperature.edge_critical"});
  ASSERT_TRUE(card.metrics);
  EXPECT_EQ(card.metrics->format, 2u);
  EXPECT_EQ(card.metrics->content, 1u);
}

TEST_F(Captures, CardsOfOtherVendorsAreNamedAndLeftAlone) {
  const auto seen = look_at(
      {"sysfs-nonamd/lact-intel-a380-xe", "sysfs-nonamd/lact-intel-cometlake", "sysfs-nonamd/lact-nvidia-rtx4080"});
  EXPECT_TRUE(seen.devices.empty());
  EXPECT_EQ(seen.notes.size(), 3u);
}

TEST_F(Captures, AnArcA380IsSeenWhereIntelsAreAskedFor) {
  look_at({"sysfs-nonamd/lact-intel-a380-xe"});
  const auto seen = inspect(root_.string(), {}, nullptr, kVendorIntel);
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->devices.size(), 1u);
  const auto& card = seen->devices.front();
  EXPECT_EQ(to_string(card.device.pci), "0000:08:00.0");
  EXPECT_EQ(card.device.name, "Arc A380");
  expect(card, {{"temperature.edge", 56},
                {"temperature.memory", 54},
                {"power.cap", 55},
                {"voltage.gfx", 605},
                {"fan.rpm", 945},
                {"clock.gfx", 0},
                {"clock.gfx_max", 2450},
                {"clock.gfx_min", 300}});
  expect_unsupported(card, {"power.average", "power.cap_default", "temperature.edge_critical", "vram.used"});
  EXPECT_TRUE(card.sample.throttle_known);
  EXPECT_TRUE(card.sample.throttle.empty());
}

TEST_F(Captures, TheGraphicsOfAProcessorAreNoDiscreteGpu) {
  look_at({"sysfs-nonamd/lact-intel-cometlake"});
  const auto seen = inspect(root_.string(), {}, nullptr, kVendorIntel);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->devices.empty());
}

TEST_F(Captures, AllTogetherNothingIsLostAndNothingTakesOver) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(captures_ / "sysfs"))
    names.push_back("sysfs/" + entry.path().filename().string());
  const auto seen = look_at(names);
  EXPECT_EQ(seen.devices.size(), names.size());
  std::map<std::string, int> ids;
  for (const auto& d : seen.devices) ++ids[d.device.id()];
  for (const auto& [id, n] : ids) EXPECT_EQ(n, 1) << id;
}

TEST_F(Captures, FilesThatNobodyCapturedAreUnsupportedAndNotZero) {
  const auto card = this->card("sysfs/asr-vangogh");  // one file only
  EXPECT_TRUE(card.sample.readings.empty());
  EXPECT_EQ(card.sample.power, PowerState::Active);
}

}  // namespace
}  // namespace gpuhealth::telemetry
