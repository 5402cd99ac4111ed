// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kStuck = ConditionType::ClocksStuckLow;

// Busy at the lowest level of the table; the memory works at full clock.
Machine stuck_machine() {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::ClockGfx, 500);
  set(machine.sample, R::PowerAverage, 70);
  set(machine.sample, R::UtilizationMemory, 25);
  set(machine.sample, R::TemperatureJunction, 60);
  return machine;
}

TEST(ClocksStuckLow, TheLowestLevelUnderLoadIsConfirmedAfterAMinute) {
  auto machine = stuck_machine();
  machine.run(84s);
  EXPECT_FALSE(machine.confirmed(kStuck));
  machine.run(4s);  // 20 s to settle, three looks, 60 s to confirm
  ASSERT_TRUE(machine.confirmed(kStuck));
  const auto& condition = *machine.open(kStuck);
  EXPECT_EQ(condition.detail,
            "The GPU is 98 % busy and its clock stays at 500 MHz of 2500 MHz; neither heat nor a limit explains it.");
  EXPECT_EQ(evidence(condition, "performance level"), "auto");
  EXPECT_EQ(evidence(condition, "second sign of load"), "memory activity 25 %");
}

TEST(ClocksStuckLow, Vega56AtTheLowestOfItsHighLevelsIsStuck) {
  auto machine = stuck_machine();
  set(machine.sample, R::ClockGfxMin, 852);
  set(machine.sample, R::ClockGfxMax, 1590);
  set(machine.sample, R::ClockGfx, 991);  // its second level
  machine.run(3min);
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::ClockGfx, 852);
  machine.run(2min);
  EXPECT_TRUE(machine.confirmed(kStuck));
}

TEST(ClocksStuckLow, BusyStuckAtHundredOnAnIdleCardIsNoLoad) {
  Machine machine;
  set(machine.sample, R::UtilizationGfx, 100);
  set(machine.sample, R::ClockGfx, 500);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, RavenIsNeverJudgedForItsBusyIsAlwaysHundred) {
  auto device = navi31();
  device.family = AsicFamily::ApuRaven;
  Machine machine(device);
  machine.sample = stuck_machine().sample;
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, Navi31ReportStuckAt1200MhzIsNotLow) {
  auto machine = stuck_machine();
  set(machine.sample, R::ClockGfx, 1200);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, APinnedHighClockWithAResidentContextIsNoFault) {
  Machine machine;
  set(machine.sample, R::UtilizationGfx, 100);
  set(machine.sample, R::ClockGfx, 2480);
  set(machine.sample, R::PowerAverage, 60);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, HeatOrALimitExplainsALowClock) {
  auto hot = stuck_machine();
  hot.sample.throttle.insert(ThrottleReason::TempMem);
  hot.run(10min);
  EXPECT_EQ(hot.open(kStuck), nullptr);
  auto at_cap = stuck_machine();
  set(at_cap.sample, R::PowerCap, 75);
  at_cap.run(10min);
  EXPECT_EQ(at_cap.open(kStuck), nullptr);
  auto mi300 = stuck_machine();
  set(mi300.sample, R::ThrottlePowerShare, 40);
  mi300.run(10min);
  EXPECT_EQ(mi300.open(kStuck), nullptr);
}

TEST(ClocksStuckLow, AClockThatSomebodySetLowIsByDesign) {
  for (const char* level : {"low", "manual", "profile_min_sclk", "profile_standard", "perf_determinism"}) {
    auto machine = stuck_machine();
    machine.sample.performance_level = level;
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty()) << level;
  }
}

TEST(ClocksStuckLow, AnUnknownPerformanceLevelRaisesNothing) {
  auto machine = stuck_machine();
  machine.sample.performance_level.clear();
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, UnknownReadingsRaiseNothing) {
  for (const auto id : {R::ClockGfx, R::ClockGfxMax, R::UtilizationGfx}) {
    auto machine = stuck_machine();
    set_status(machine.sample, id, ReadingStatus::Implausible);
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty());
  }
}

TEST(ClocksStuckLow, LightWorkAtLowClockRaisesNothing) {
  auto machine = stuck_machine();
  set(machine.sample, R::UtilizationGfx, 75);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, PowerAboveWhatTheSameGpuDrewIdleIsASecondSign) {
  Machine machine;
  machine.run(1min);  // idle at 22 W
  set(machine.sample, R::UtilizationGfx, 99);
  set(machine.sample, R::ClockGfx, 500);
  set(machine.sample, R::PowerAverage, 37);  // below 22 W * 1.5 + 5 W
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::PowerAverage, 45);
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kStuck));
  EXPECT_EQ(evidence(*machine.open(kStuck), "second sign of load"), "power above idle");
}

TEST(ClocksStuckLow, StaysThroughIdleAndClearsWhenTheClockRises) {
  auto machine = stuck_machine();
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kStuck));
  set(machine.sample, R::UtilizationGfx, 1);
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kStuck));
  set(machine.sample, R::ClockGfx, 900);  // above low, below 40 % of 2500 MHz
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kStuck));
  set(machine.sample, R::ClockGfx, 1000);
  machine.run(12s);
  EXPECT_EQ(machine.open(kStuck), nullptr);
}

TEST(ClocksStuckLow, FirstSamplesAfterAWakeUpAreNotBelieved) {
  Machine machine;
  machine.sample.power = PowerState::Suspended;
  machine.run(1min);
  const auto busy = stuck_machine();
  machine.sample = busy.sample;
  machine.run(20s);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(ClocksStuckLow, OneLookNeverSuffices) {
  const auto machine = stuck_machine();
  EXPECT_TRUE(judge_once(machine.device, machine.sample, {}).empty());
}

}  // namespace
}  // namespace gpuhealth::health
