// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kDead = ConditionType::SmuDead;

void kill(Sample& sample, std::initializer_list<ReadingId> ids) {
  for (const auto id : ids) set_status(sample, id, ReadingStatus::SmuDead);
}
constexpr std::initializer_list<ReadingId> kAll = {
    R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory, R::PowerAverage,      R::ClockGfx,
    R::ClockMemory,     R::VoltageGfx,          R::UtilizationGfx,    R::UtilizationMemory, R::FanRpm};

TEST(SmuDead, AllSensorsFailingAtOnceAreConfirmedAfterTenSeconds) {
  Machine machine;
  machine.run(10s);
  kill(machine.sample, kAll);
  machine.run(10s);
  EXPECT_FALSE(machine.confirmed(kDead));
  machine.run(2s);
  ASSERT_TRUE(machine.confirmed(kDead));
  EXPECT_EQ(machine.open(kDead)->severity, Severity::Critical);
  EXPECT_EQ(evidence(*machine.open(kDead), "temperature"), "3 without an answer");
  EXPECT_EQ(machine.open(kDead)->detail,
            "10 of 10 sensors that worked before fail at once; the management firmware does not answer.");
}

TEST(SmuDead, OneKindOfSensorIsNotEnough) {
  Machine machine;
  kill(machine.sample, {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory});
  machine.run(10min);
  EXPECT_EQ(machine.open(kDead), nullptr);
}

TEST(SmuDead, TwoSensorsOfManyAreNotEnough) {
  Machine machine;
  kill(machine.sample, {R::TemperatureEdge, R::PowerAverage});
  machine.run(10min);
  EXPECT_EQ(machine.open(kDead), nullptr);
}

TEST(SmuDead, UnsupportedResetAndUnreadableSensorsAreNotDead) {
  for (const auto status : {ReadingStatus::Unsupported, ReadingStatus::InReset, ReadingStatus::Unreadable,
                            ReadingStatus::Stuck, ReadingStatus::Asleep}) {
    Machine machine;
    for (const auto id : kAll) set_status(machine.sample, id, status);
    machine.run(10min);
    EXPECT_TRUE(machine.changes.empty()) << to_string(status);
  }
}

TEST(SmuDead, ClearsWhenTheSensorsAnswerForHalfAMinute) {
  Machine machine;
  kill(machine.sample, kAll);
  machine.run(20s);
  ASSERT_TRUE(machine.confirmed(kDead));
  machine.sample = idle_desktop();
  machine.run(30s);
  EXPECT_TRUE(machine.confirmed(kDead));
  machine.run(2s);
  EXPECT_EQ(machine.open(kDead), nullptr);
}

TEST(SmuDead, OneLookNeverSuffices) {
  auto sample = idle_desktop();
  kill(sample, kAll);
  EXPECT_TRUE(judge_once(navi31(), sample, {}).empty());
}

}  // namespace
}  // namespace gpuhealth::health
