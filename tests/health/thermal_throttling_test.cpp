// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kSlow = ConditionType::ThermalThrottling;

Machine hot_machine() {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::TemperatureJunction, 108);
  machine.sample.throttle.insert(ThrottleReason::TempHotspot);
  return machine;
}

TEST(ThermalThrottling, AReasonThatLastsIsConfirmedAfterAMinute) {
  auto machine = hot_machine();
  machine.run(60s);
  EXPECT_FALSE(machine.confirmed(kSlow));
  machine.run(4s);  // half a window to know the share (30 s after the first look), and 30 s of it
  ASSERT_TRUE(machine.confirmed(kSlow));
  const auto& condition = *machine.open(kSlow);
  EXPECT_EQ(condition.severity, Severity::Warning);
  EXPECT_EQ(evidence(condition, "TEMP_HOTSPOT"), "hotspot (junction) temperature");
  EXPECT_EQ(evidence(condition, "temperature.junction"), "108 C");
  EXPECT_EQ(condition.detail,
            "Heat slowed the GPU for 100 % of the last 60 s: TEMP_HOTSPOT (hotspot (junction) temperature).");
}

TEST(ThermalThrottling, Navi31HotspotBitWithoutHeatIsNotBelieved) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::TemperatureJunction, 84);  // 26 C below its limit
  machine.sample.throttle.insert(ThrottleReason::TempHotspot);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, GatedBitsNeverCount) {
  auto machine = hot_machine();
  machine.sample.throttle = {};
  machine.sample.throttle_gated.insert(ThrottleReason::TempHotspot);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, BitsOfAPartThatReportsNoneAreIgnored) {
  auto machine = hot_machine();
  machine.sample.throttle_known = false;
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, ABitThatFlickersForATenthOfTheTimeRaisesNothing) {
  auto machine = hot_machine();
  int n = 0;
  machine.run(20min, 2s, [&](Sample& sample) {
    sample.throttle = {};
    if (++n % 10 == 0) sample.throttle.insert(ThrottleReason::TempHotspot);
  });
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, ABitThatFlickersForHalfOfTheTimeIsConfirmed) {
  auto machine = hot_machine();
  int n = 0;
  machine.run(3min, 2s, [&](Sample& sample) {
    sample.throttle = {};
    if (++n % 2 == 0) sample.throttle.insert(ThrottleReason::TempHotspot);
  });
  EXPECT_TRUE(machine.confirmed(kSlow));
}

TEST(ThermalThrottling, ARegulatorWithoutALimitCountsUnderLoadOnly) {
  Machine idle;
  idle.sample.throttle.insert(ThrottleReason::TempVrGfx);
  idle.run(5min);
  EXPECT_TRUE(idle.changes.empty());
  Machine busy;
  put_under_load(busy.sample);
  busy.sample.throttle.insert(ThrottleReason::TempVrGfx);
  busy.run(5min);
  EXPECT_TRUE(busy.confirmed(kSlow));
}

TEST(ThermalThrottling, TheCpuHalfOfAnApuSaysNothingOfTheGpu) {
  auto device = navi31();
  device.family = AsicFamily::ApuRdna3;
  Machine machine(device);
  put_under_load(machine.sample);
  machine.sample.throttle.insert(ThrottleReason::ThmCore);
  machine.sample.throttle.insert(ThrottleReason::ProchotCpu);
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, ALaptopsSkinLimitIsInformation) {
  Machine machine;
  put_under_load(machine.sample);
  machine.sample.throttle.insert(ThrottleReason::TempSkin);
  machine.run(5min);
  ASSERT_TRUE(machine.confirmed(kSlow));
  EXPECT_EQ(machine.open(kSlow)->severity, Severity::Info);
}

TEST(ThermalThrottling, Mi300ResidencySharesCountWithoutAnyBit) {
  Machine machine;
  put_under_load(machine.sample);
  machine.sample.throttle_known = false;
  set(machine.sample, R::ThrottleHbmThermalShare, 19);
  set(machine.sample, R::ThrottleSocketThermalShare, 0);
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::ThrottleHbmThermalShare, 21);
  machine.run(3min);
  ASSERT_TRUE(machine.confirmed(kSlow));
  EXPECT_EQ(evidence(*machine.open(kSlow), "throttle.hbm_thermal"), "21 %");
}

TEST(ThermalThrottling, Mi300PowerShareIsNotHeat) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::ThrottlePowerShare, 90);
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ThermalThrottling, ClearsAMinuteAfterTheShareHasFallen) {
  auto machine = hot_machine();
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kSlow));
  machine.sample.throttle = {};
  machine.run(100s);  // at 58 s the share is 3 %: good from there
  EXPECT_TRUE(machine.confirmed(kSlow));
  machine.run(24s);
  EXPECT_EQ(machine.open(kSlow), nullptr);
}

TEST(ThermalThrottling, OneLookShowsABelievedReason) {
  auto machine = hot_machine();
  const auto conditions = judge_once(machine.device, machine.sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, kSlow);
  set(machine.sample, R::TemperatureJunction, 60);
  EXPECT_TRUE(judge_once(machine.device, machine.sample, {}).empty());
}

}  // namespace
}  // namespace gpuhealth::health
