// SPDX-License-Identifier: Apache-2.0
// Intel's discrete GPUs: small trees as xe and i915 lay them out.
#include "telemetry/intel.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "telemetry/discovery.hpp"
#include "telemetry/frame.hpp"
#include "telemetry/inspect.hpp"
#include "telemetry/pcie_link.hpp"
#include "telemetry/reader.hpp"
#include "telemetry/sampler.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class Intel : public ::testing::Test {
 protected:
  Intel() { plug("0000:03:00.0", "0x56a0", "xe"); }

  void plug(const std::string& address, const std::string& device, const std::string& driver) {
    const auto dir = "/sys/bus/pci/devices/" + address;
    put(dir + "/vendor", "0x8086");
    put(dir + "/device", device);
    put(dir + "/class", "0x030000");
    put(dir + "/power/runtime_status", "active");
    fs::create_symlink("../../../bus/pci/drivers/" + driver, root_.path() / ("." + dir) / "driver");
  }
  void put(const std::string& file, const std::string& text) {
    const fs::path path = root_.string() + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void set(const std::string& file, const std::string& text) { put(dir_ + file, text); }

  // As xe shows an Arc card: Linux 6.16.
  void as_xe() {
    set("hwmon/hwmon4/name", "xe");
    set("hwmon/hwmon4/temp2_label", "pkg");
    set("hwmon/hwmon4/temp2_input", "61000");
    set("hwmon/hwmon4/temp3_label", "vram");
    set("hwmon/hwmon4/temp3_input", "58000");
    set("hwmon/hwmon4/energy1_label", "card");
    set("hwmon/hwmon4/energy1_input", "1000000000");
    set("hwmon/hwmon4/energy2_label", "pkg");
    set("hwmon/hwmon4/energy2_input", "500000000");
    set("hwmon/hwmon4/power1_label", "card");
    set("hwmon/hwmon4/power1_max", "225000000");
    set("hwmon/hwmon4/power1_rated_max", "225000000");
    set("hwmon/hwmon4/power1_cap", "300000000");
    set("hwmon/hwmon4/in1_label", "pkg");
    set("hwmon/hwmon4/in1_input", "905");
    set("hwmon/hwmon4/fan1_input", "1450");
    set("tile0/gt0/freq0/act_freq", "2400");
    set("tile0/gt0/freq0/rp0_freq", "2400");
    set("tile0/gt0/freq0/rpn_freq", "300");
    set("tile0/gt0/freq0/throttle/status", "0");
    for (const char* reason : {"pl1", "pl2", "pl4", "thermal", "prochot", "ratl", "vr_thermalert", "vr_tdc"})
      set(std::string("tile0/gt0/freq0/throttle/reason_") + reason, "0");
  }
  Sample sample(Sampler& sampler, int second, bool slow = true) {
    Sample out;
    sampler.sample(slow, SteadyTime{} + seconds(second), out);
    return out;
  }
  Sampler sampler() {
    const auto info = identify(root_.string(), *parse_pci_address("0000:03:00.0"), NameTable::parse(""));
    return Sampler(root_.string(), *info);
  }

  test::TempDir root_;
  const std::string dir_ = "/sys/bus/pci/devices/0000:03:00.0/";
};

TEST_F(Intel, AnArcCardSaysWhatXeSaysOfIt) {
  as_xe();
  auto s = sampler();
  const auto first = sample(s, 100);
  EXPECT_EQ(first.value(ReadingId::TemperatureEdge), 61);
  EXPECT_EQ(first.value(ReadingId::TemperatureMemory), 58);
  EXPECT_EQ(first.value(ReadingId::PowerCap), 225);
  EXPECT_EQ(first.value(ReadingId::PowerCapDefault), 225);
  EXPECT_EQ(first.value(ReadingId::VoltageGfx), 905);
  EXPECT_EQ(first.value(ReadingId::FanRpm), 1450);
  EXPECT_EQ(first.value(ReadingId::ClockGfx), 2400);
  EXPECT_EQ(first.value(ReadingId::ClockGfxMax), 2400);
  EXPECT_EQ(first.value(ReadingId::ClockGfxMin), 300);
  EXPECT_TRUE(first.throttle_known);
  EXPECT_TRUE(first.throttle.empty());
}

TEST_F(Intel, PowerIsTheEnergyOfTheWholeCardOverTheTimeBetweenTwoSamples) {
  as_xe();
  auto s = sampler();
  EXPECT_EQ(sample(s, 100).value(ReadingId::PowerAverage), std::nullopt) << "one look at a counter says nothing";
  set("hwmon/hwmon4/energy1_input", "1300000000");  // 300 J in 2 s
  EXPECT_EQ(sample(s, 102, false).value(ReadingId::PowerAverage), 150);
  set("hwmon/hwmon4/energy1_input", "5");  // the driver was loaded anew
  EXPECT_EQ(sample(s, 104, false).value(ReadingId::PowerAverage), std::nullopt);
  set("hwmon/hwmon4/energy1_input", "20000005");
  EXPECT_NEAR(sample(s, 106, false).value(ReadingId::PowerAverage).value_or(0), 10, 1e-9);
}

TEST_F(Intel, WithoutABoardsMeterThePackagesCounts) {
  as_xe();
  for (const char* file : {"energy1_label", "energy1_input", "power1_label", "power1_max"})
    fs::remove(root_.string() + dir_ + "hwmon/hwmon4/" + file);
  set("hwmon/hwmon4/power2_label", "pkg");
  set("hwmon/hwmon4/power2_max", "55000000");
  auto s = sampler();
  EXPECT_EQ(sample(s, 100).value(ReadingId::PowerCap), 55);
  set("hwmon/hwmon4/energy2_input", "640000000");  // 140 J in 4 s
  EXPECT_EQ(sample(s, 104).value(ReadingId::PowerAverage), 35);
}

TEST_F(Intel, ALimitThatIsOffIsNoLimitOfZeroWatts) {
  as_xe();
  set("hwmon/hwmon4/power1_max", "0");
  auto s = sampler();
  const auto seen = sample(s, 100);
  const auto* cap = seen.find(ReadingId::PowerCap);
  ASSERT_NE(cap, nullptr);
  EXPECT_EQ(cap->status, ReadingStatus::Implausible);
}

TEST_F(Intel, ReasonsOfEachDomainAreTakenTogether) {
  as_xe();
  set("tile0/gt0/freq0/throttle/status", "5");
  set("tile0/gt0/freq0/throttle/reason_pl1", "1");
  set("tile0/gt1/freq0/throttle/status", "1");
  set("tile0/gt1/freq0/throttle/reason_thermal", "4");
  set("tile0/gt1/freq0/throttle/reason_of_the_future", "1");
  auto s = sampler();
  ThrottleSet expected;
  expected.insert(ThrottleReason::Ppt0);
  expected.insert(ThrottleReason::TempGpu);
  EXPECT_EQ(sample(s, 100).throttle, expected);
  set("tile0/gt0/freq0/throttle/status", "0");
  set("tile0/gt1/freq0/throttle/status", "0");
  EXPECT_TRUE(sample(s, 102, false).throttle.empty());
}

TEST_F(Intel, I915SaysTheSameInOtherFiles) {
  set("hwmon/hwmon2/name", "i915");
  set("hwmon/hwmon2/temp1_input", "55000");
  set("hwmon/hwmon2/energy1_input", "1000000");
  set("hwmon/hwmon2/power1_max", "190000000");
  set("hwmon/hwmon2/in0_input", "870");
  set("hwmon/hwmon2/fan1_input", "900");
  set("drm/card1/gt_act_freq_mhz", "1800");
  set("drm/card1/gt_RP0_freq_mhz", "2400");
  set("drm/card1/gt_RPn_freq_mhz", "600");
  set("drm/card1/gt/gt0/throttle_reason_status", "1");
  set("drm/card1/gt/gt0/throttle_reason_vr_tdc", "1");
  auto s = sampler();
  auto seen = sample(s, 100);
  EXPECT_EQ(seen.value(ReadingId::TemperatureEdge), 55);
  EXPECT_EQ(seen.value(ReadingId::PowerCap), 190);
  EXPECT_EQ(seen.value(ReadingId::VoltageGfx), 870);
  EXPECT_EQ(seen.value(ReadingId::FanRpm), 900);
  EXPECT_EQ(seen.value(ReadingId::ClockGfx), 1800);
  EXPECT_EQ(seen.value(ReadingId::ClockGfxMax), 2400);
  EXPECT_TRUE(seen.throttle.contains(ThrottleReason::TdcGfx));
  set("hwmon/hwmon2/energy1_input", "31000000");
  EXPECT_EQ(sample(s, 101).value(ReadingId::PowerAverage), 30);
}

TEST_F(Intel, ErrorCountersAreSummedByWhatTheyCount) {
  const std::string folder = "drm/card0/gt/gt0/error_counter/";
  set(folder + "correctable_l3bank", "3");
  set(folder + "correctable_guc", "4");
  set(folder + "fatal_tlb", "1");
  set(folder + "soc_fatal_hbm_ss0_3", "2");
  set(folder + "sgunit_nonfatal", "5");
  set(folder + "engine_reset", "77");
  auto s = sampler();
  const auto seen = sample(s, 100);
  EXPECT_EQ(seen.value(find_reading("ras.gfx.correctable")->id), 7);
  EXPECT_EQ(seen.value(find_reading("ras.gfx.uncorrectable")->id), 6);
  EXPECT_EQ(seen.value(find_reading("ras.umc.uncorrectable")->id), 2);
}

TEST_F(Intel, OfASleepingOneNothingIsRead) {
  as_xe();
  set("power/runtime_status", "suspended");
  auto s = sampler();
  const auto seen = sample(s, 100);
  EXPECT_EQ(seen.find(ReadingId::TemperatureEdge)->status, ReadingStatus::Asleep);
  EXPECT_EQ(seen.find(ReadingId::ClockGfx)->status, ReadingStatus::Asleep);
  EXPECT_FALSE(seen.throttle_known);
}

TEST_F(Intel, AnIdleOneIsLeftAloneUntilItMaySleep) {
  as_xe();
  set("power/control", "auto");
  set("power/autosuspend_delay_ms", "1000");
  set("tile0/gt0/freq0/act_freq", "0");  // powered down
  auto s = sampler();
  sample(s, 100);
  set("hwmon/hwmon4/temp2_input", "70000");
  EXPECT_EQ(sample(s, 102).value(ReadingId::TemperatureEdge), 61) << "within a second and the margin of two";
  EXPECT_EQ(sample(s, 104).value(ReadingId::TemperatureEdge), 70);
}

TEST_F(Intel, AnotherDriversFilesOfTheSameNameAreNotTaken) {
  set("hwmon/hwmon4/name", "amdgpu");
  set("hwmon/hwmon4/energy1_input", "1");
  set("hwmon/hwmon4/power1_max", "100000000");
  auto s = sampler();
  EXPECT_EQ(sample(s, 100).value(ReadingId::PowerCap), std::nullopt);
  // And the actuators, which write power1_cap, must not take Intel's burst limit for AMD's.
  set("hwmon/hwmon4/name", "xe");
  EXPECT_EQ(hwmon_dir(root_.string() + dir_), "");
}

TEST_F(Intel, TheReaderWatchesDiscreteOnesAndLeavesTheProcessorsOwn) {
  as_xe();
  plug("0000:00:02.0", "0x9bc8", "i915");
  const SystemClock clock;
  Reader reader(root_.string(), clock, nullptr);
  std::vector<std::uint8_t> bytes;
  Request request;
  request.kind = RequestKind::Discover;
  reader.answer(request, bytes);
  FrameParser parser;
  parser.feed(bytes);
  const auto frame = parser.next();
  ASSERT_TRUE(frame && *frame);
  const auto& found = std::get<DevicesFrame>(**frame);
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(to_string(found.devices[0].pci), "0000:03:00.0");
  EXPECT_EQ(found.devices[0].name, "Arc A770");
  EXPECT_EQ(found.devices[0].driver, "xe");
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_TRUE(found.notes[0].starts_with("0000:00:02.0: 8086:9bc8")) << found.notes[0];
}

TEST(IntelWords, ReasonsHaveTheHousesNames) {
  EXPECT_EQ(intel_reason("reason_pl1"), ThrottleReason::Ppt0);
  EXPECT_EQ(intel_reason("reason_pl2"), ThrottleReason::Ppt1);
  EXPECT_EQ(intel_reason("throttle_reason_pl4"), ThrottleReason::EdcGfx);
  EXPECT_EQ(intel_reason("reason_mem_thermal"), ThrottleReason::TempMem);
  EXPECT_EQ(intel_reason("reason_prochot"), ThrottleReason::Prochot);
  EXPECT_EQ(intel_reason("throttle_reason_status"), std::nullopt);
  EXPECT_EQ(intel_reason("reasons"), std::nullopt);
  EXPECT_EQ(intel_reason("reason_"), std::nullopt);
  EXPECT_EQ(intel_reason("status"), std::nullopt);
}

TEST(IntelWords, NonfatalIsNotFatalByAccidentOfItsName) {
  EXPECT_EQ(intel_error_counter("sgunit_nonfatal")->kind, RasKind::Uncorrectable);
  EXPECT_EQ(intel_error_counter("gsc_correctable_sram_ecc")->kind, RasKind::Correctable);
  EXPECT_FALSE(intel_error_counter("engine_reset"));
  EXPECT_FALSE(intel_error_counter("uncorrectableish"));
}

TEST_F(Intel, TheSwitchOnAnArcCardIsNotItsSlot) {
  const fs::path bus = root_.path() / "devices";
  const auto bridge = [&](const fs::path& at, const char* vendor, const char* device) {
    fs::create_directories(at);
    std::ofstream(at / "vendor") << vendor << "\n";
    std::ofstream(at / "device") << device << "\n";
    return at;
  };
  const auto slot = bridge(bus / "pci0000:00/0000:00:01.0", "0x8086", "0xa70d");
  const auto up = bridge(slot / "0000:01:00.0", "0x8086", "0x4fa0");
  const auto down = bridge(up / "0000:02:01.0", "0x8086", "0x4fa4");
  const auto gpu = bridge(down / "0000:03:00.0", "0x8086", "0x56a0");
  const auto chain = find_pcie_chain(gpu.string());
  EXPECT_EQ(chain.card_end, up.string());
  EXPECT_EQ(chain.platform_end, slot.string());
}

}  // namespace
}  // namespace gpuhealth::telemetry
