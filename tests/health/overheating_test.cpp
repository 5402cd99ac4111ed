// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
using enum ChangeKind;
constexpr auto kHot = ConditionType::Overheating;
using Changes = std::vector<Seen>;

TEST(Overheating, JunctionAtItsLimitIsConfirmedAfterTenSeconds) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::TemperatureJunction, 110);
  machine.run(10s);  // looks at 2, 4, 6, 8, 10 s: eight seconds after the first
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}}));
  machine.run(2s);
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}, {Confirmed, kHot}}));
  const auto& condition = machine.changes.back().condition;
  EXPECT_EQ(condition.severity, Severity::Critical);
  EXPECT_EQ(condition.state, ConditionState::Confirmed);
  EXPECT_EQ(condition.id, "overheating-uid-49afc8b43a8a6d30-1764515002");
  EXPECT_EQ(condition.device_label, "Radeon RX 7900 XTX at 0000:03:00.0");
  EXPECT_EQ(condition.detail,
            "The junction temperature is 110 C; its critical limit is 110 C and at 115 C the driver powers the machine "
            "off.");
  EXPECT_EQ(evidence(condition, "temperature.junction"), "110 C");
  EXPECT_EQ(evidence(condition, "temperature.junction_critical"), "110 C");
  EXPECT_EQ(evidence(condition, "temperature.junction_emergency"), "115 C");
  EXPECT_EQ(evidence(condition, "temperature.edge"), "(none)");
}

TEST(Overheating, OneDegreeBelowEveryLimitRaisesNothing) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::TemperatureEdge, 99);
  set(machine.sample, R::TemperatureJunction, 109);
  set(machine.sample, R::TemperatureMemory, 107);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(Overheating, EachSensorIsHeldAgainstItsOwnLimit) {
  for (const auto& [sensor, limit] : {std::pair{R::TemperatureEdge, 100.0}, std::pair{R::TemperatureMemory, 108.0}}) {
    Machine machine;
    set(machine.sample, sensor, limit);
    machine.run(20s);
    EXPECT_TRUE(machine.confirmed(kHot)) << limit;
  }
}

TEST(Overheating, ASpikeOfOneSampleIsDroppedSilently) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 100);
  machine.run(2s);
  set(machine.sample, R::TemperatureEdge, 60);
  machine.run(2s);
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}, {Cleared, kHot}}));
  EXPECT_FALSE(machine.changes.back().was_confirmed);
}

TEST(Overheating, ClearsFiveDegreesBelowTheLimitAndNotBefore) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  ASSERT_TRUE(machine.confirmed(kHot));
  set(machine.sample, R::TemperatureEdge, 95);  // within the 5 C of hysteresis
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kHot));
  machine.forget();
  set(machine.sample, R::TemperatureEdge, 94);
  machine.run(30s);
  EXPECT_TRUE(machine.changes.empty());
  machine.run(2s);  // 30 s after the first cool look
  ASSERT_EQ(machine.seen(), (Changes{{Cleared, kHot}}));
  EXPECT_TRUE(machine.changes[0].was_confirmed);
  EXPECT_EQ(machine.changes[0].condition.state, ConditionState::Cleared);
  EXPECT_EQ(machine.changes[0].condition.cleared, machine.clock.now().wall);
}

TEST(Overheating, NearTheEmergencyLimitTheSecondLookConfirms) {
  Machine machine;
  set(machine.sample, R::TemperatureJunction, 113);  // 2 C below 115 C
  machine.run(4s);
  EXPECT_TRUE(machine.confirmed(kHot));
}

TEST(Overheating, LimitsThatAreNoLimitsAreNotBelieved) {
  for (const double limit : {0.0, -273.15, 40.0, 150.0, 511.0, std::numeric_limits<double>::quiet_NaN()}) {
    Machine machine;
    for (const auto id : {R::TemperatureEdgeCritical, R::TemperatureJunctionCritical, R::TemperatureMemoryCritical})
      set(machine.sample, id, limit);
    set(machine.sample, R::TemperatureEdge, 120);
    machine.run(1min);
    EXPECT_TRUE(machine.changes.empty()) << limit;
  }
}

TEST(Overheating, SentinelTemperaturesAreNotBelieved) {
  for (const double value : {511.0, 65535.0, 3'892'314.0, std::numeric_limits<double>::infinity()}) {
    Machine machine;
    set(machine.sample, R::TemperatureEdge, value);
    machine.run(1min);
    EXPECT_TRUE(machine.changes.empty()) << value;
  }
}

TEST(Overheating, WithoutStatedLimitsNothingIsJudged) {
  Machine machine;
  for (const auto id : {R::TemperatureEdgeCritical, R::TemperatureJunctionCritical, R::TemperatureMemoryCritical})
    set_status(machine.sample, id, ReadingStatus::Unsupported);
  set(machine.sample, R::TemperatureEdge, 125);
  machine.run(1min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(Overheating, ASensorThatFallsSilentNeitherConfirmsNorClears) {
  Machine machine;
  set(machine.sample, R::TemperatureJunction, 111);
  machine.run(4s);
  set_status(machine.sample, R::TemperatureJunction, ReadingStatus::Unreadable);
  machine.run(60s);
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}}));
  set(machine.sample, R::TemperatureJunction, 111);
  machine.run(20s);
  ASSERT_TRUE(machine.confirmed(kHot));
  set_status(machine.sample, R::TemperatureJunction, ReadingStatus::Unreadable);
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kHot));
}

TEST(Overheating, ARaisedConditionThatIsNotSeenAgainForTwoMinutesIsDropped) {
  Machine machine;
  set(machine.sample, R::TemperatureJunction, 111);
  machine.run(4s);
  set_status(machine.sample, R::TemperatureJunction, ReadingStatus::Unreadable);
  machine.run(122s);
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}, {Cleared, kHot}}));
  EXPECT_FALSE(machine.changes.back().was_confirmed);
}

TEST(Overheating, ASleepingGpuIsNotHot) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  ASSERT_TRUE(machine.confirmed(kHot));
  machine.sample.power = PowerState::Suspended;
  for (auto& reading : machine.sample.readings) reading.status = ReadingStatus::Asleep;
  machine.run(32s);
  EXPECT_EQ(machine.open(kHot), nullptr);
}

TEST(Overheating, OneLookSuffices) {
  auto sample = idle_desktop();
  EXPECT_TRUE(judge_once(navi31(), sample, {}).empty());
  set(sample, R::TemperatureMemory, 109);
  const auto conditions = judge_once(navi31(), sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, kHot);
  EXPECT_EQ(conditions[0].severity, Severity::Critical);
  EXPECT_EQ(conditions[0].state, ConditionState::Raised);
}

}  // namespace
}  // namespace gpuhealth::health
