// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kHeld = ConditionType::PowerThrottling;

Machine capped(double cap, double power) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::PowerCap, cap);
  set(machine.sample, R::PowerAverage, power);
  return machine;
}

TEST(PowerThrottling, ALoweredLimitThatTheGpuRunsAgainstIsConfirmed) {
  auto machine = capped(200, 195);
  machine.run(20s);  // load is not believed for 20 s after the start
  EXPECT_TRUE(machine.changes.empty());
  machine.run(36s);
  ASSERT_TRUE(machine.confirmed(kHeld));
  const auto& condition = *machine.open(kHeld);
  EXPECT_EQ(condition.severity, Severity::Warning);
  EXPECT_EQ(condition.detail, "The power limit is 200 W, the card's default 303 W; under load the GPU draws 195 W.");
  EXPECT_EQ(evidence(condition, "power.cap"), "200 W");
  EXPECT_EQ(evidence(condition, "power.cap_default"), "303 W");
}

TEST(PowerThrottling, RunningAgainstTheDefaultLimitIsByDesign) {
  auto machine = capped(303, 303);
  machine.sample.throttle.insert(ThrottleReason::Ppt0);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PowerThrottling, ALimitAFewWattsLowerIsNotLowered) {
  auto machine = capped(290, 290);  // 4.3 %
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PowerThrottling, ARaisedLimitIsNotLowered) {
  auto machine = capped(350, 350);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PowerThrottling, ALoweredLimitThatTheLoadDoesNotReachRaisesNothing) {
  auto machine = capped(200, 150);
  machine.sample.throttle.insert(ThrottleReason::Ppt0);  // flickers at light load on Navi 22
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PowerThrottling, PowerBitsNearTheLoweredLimitCount) {
  auto machine = capped(200, 182);  // 91 %
  machine.run(2min);
  EXPECT_TRUE(machine.changes.empty());
  machine.sample.throttle.insert(ThrottleReason::Ppt0);
  machine.run(1min);
  ASSERT_TRUE(machine.confirmed(kHeld));
  EXPECT_EQ(evidence(*machine.open(kHeld), "PPT0"), "package power limit, slow");
}

TEST(PowerThrottling, UnknownLimitsRaiseNothing) {
  for (const auto id : {R::PowerCap, R::PowerCapDefault}) {
    auto machine = capped(200, 200);
    set_status(machine.sample, id, ReadingStatus::Unreadable);
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty());
    set(machine.sample, id, 0);  // secondary die of an MI250X
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty());
  }
}

TEST(PowerThrottling, AnApusLimitIsMeantToBeSet) {
  auto device = navi31();
  device.family = AsicFamily::ApuVangogh;
  Machine machine(device);
  put_under_load(machine.sample);
  set(machine.sample, R::PowerCap, 8);
  set(machine.sample, R::PowerCapDefault, 15);
  set(machine.sample, R::PowerAverage, 8);
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PowerThrottling, StaysThroughIdleAndClearsWhenTheLimitIsRestored) {
  auto machine = capped(200, 198);
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kHeld));
  set(machine.sample, R::UtilizationGfx, 1);
  set(machine.sample, R::PowerAverage, 20);
  machine.run(1h);
  EXPECT_TRUE(machine.confirmed(kHeld));
  set(machine.sample, R::PowerCap, 303);
  machine.run(32s);
  EXPECT_EQ(machine.open(kHeld), nullptr);
}

TEST(PowerThrottling, ALimitThatAnActionHasInForceIsWanted) {
  auto machine = capped(200, 198);
  machine.engine.on_own_power_cap(machine.device.id(), 200.4);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::PowerCap, 150);  // somebody else went lower
  set(machine.sample, R::PowerAverage, 149);
  machine.run(2min);
  EXPECT_TRUE(machine.confirmed(kHeld));
  set(machine.sample, R::PowerCap, 200);
  machine.run(1min);
  EXPECT_FALSE(machine.confirmed(kHeld));
  machine.engine.on_own_power_cap(machine.device.id(), std::nullopt);  // taken back, and yet it is there
  set(machine.sample, R::PowerAverage, 198);
  machine.run(2min);
  EXPECT_TRUE(machine.confirmed(kHeld));
}

TEST(PowerThrottling, ASleepDoesNotClearIt) {
  auto machine = capped(200, 198);
  machine.run(2min);
  machine.sample.power = PowerState::Suspended;
  machine.run(1h);
  EXPECT_TRUE(machine.confirmed(kHeld));
}

TEST(PowerThrottling, OneLookSuffices) {
  const auto machine = capped(200, 198);
  const auto conditions = judge_once(machine.device, machine.sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, kHeld);
}

}  // namespace
}  // namespace gpuhealth::health
