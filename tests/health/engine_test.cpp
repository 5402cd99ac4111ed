// SPDX-License-Identifier: Apache-2.0
#include "health/engine.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
using enum ChangeKind;
constexpr auto kHot = ConditionType::Overheating;
using Changes = std::vector<Seen>;

Machine overheated() {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  return machine;
}

TEST(Engine, AStepOfTheWallClockConfirmsAndClearsNothing) {
  for (const auto step : {Duration(24h), Duration(-24h)}) {
    Machine machine;
    set(machine.sample, R::TemperatureEdge, 101);
    machine.run(4s);
    machine.clock.step_wall(step);
    machine.run(2s);
    EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}}));
    machine.run(10s);
    ASSERT_TRUE(machine.confirmed(kHot));
    set(machine.sample, R::TemperatureEdge, 50);
    machine.run(10s);
    machine.clock.step_wall(step);
    machine.run(10s);
    EXPECT_TRUE(machine.confirmed(kHot));
    machine.run(20s);
    EXPECT_EQ(machine.open(kHot), nullptr);
  }
}

TEST(Engine, LateAndRepeatedSamplesAreIgnored) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(4s);
  const auto late = machine.sample;
  for (int i = 0; i < 100; ++i) machine.look();
  machine.run(2s);
  set(machine.sample, R::TemperatureEdge, 50);
  auto early = late;
  set(early, R::TemperatureEdge, 50);
  machine.take(machine.engine.on_sample(machine.device, early));
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}}));
}

TEST(Engine, ASampleOfAnotherDeviceIsIgnored) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.sample.device = "uid-other";
  machine.sample.time = machine.clock.now();
  EXPECT_TRUE(machine.engine.on_sample(machine.device, machine.sample).empty());
}

TEST(Engine, AnEmptySampleOfAnUnknownDeviceRaisesNothing) {
  Engine engine({}, "boot-now");
  EXPECT_TRUE(engine.on_sample(DeviceInfo{}, Sample{}).empty());
  EXPECT_TRUE(judge_once(DeviceInfo{}, Sample{}, {}).empty());
  EXPECT_TRUE(engine.open().empty());
}

TEST(Engine, TimeAcrossAGapDoesNotConfirm) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(4s);
  machine.pass(61s);
  machine.run(8s);  // bad again for 6 s since the gap
  EXPECT_EQ(machine.seen(), (Changes{{Raised, kHot}}));
}

TEST(Engine, ASlowSamplingPeriodIsNotAGap) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(10min, 120s);
  EXPECT_TRUE(machine.confirmed(kHot));
}

TEST(Engine, AcknowledgedStaysSoUntilItClears) {
  auto machine = overheated();
  const auto id = machine.open(kHot)->id;
  const auto change = machine.engine.acknowledge(id, machine.clock.now());
  ASSERT_TRUE(change);
  EXPECT_EQ(change->kind, Acknowledged);
  EXPECT_TRUE(change->condition.acknowledged);
  machine.forget();
  machine.run(1h);
  EXPECT_TRUE(machine.open(kHot)->acknowledged);
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::TemperatureEdge, 50);
  machine.run(1h);
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  EXPECT_FALSE(machine.open(kHot)->acknowledged);
}

TEST(Engine, OnlyAConfirmedConditionCanBeAcknowledged) {
  Machine machine;
  EXPECT_EQ(machine.engine.acknowledge("overheating-x-1", machine.clock.now()).error().code, ErrorCode::NotFound);
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(2s);
  const auto id = machine.open(kHot)->id;
  EXPECT_EQ(machine.engine.acknowledge(id, machine.clock.now()).error().code, ErrorCode::InvalidInput);
}

TEST(Engine, AConditionThatReturnsWithinTenMinutesIsTheSameOne) {
  auto machine = overheated();
  const auto first = *machine.open(kHot);
  set(machine.sample, R::TemperatureEdge, 50);
  machine.run(9min);
  ASSERT_EQ(machine.open(kHot), nullptr);
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  EXPECT_EQ(machine.open(kHot)->id, first.id);
  EXPECT_EQ(machine.open(kHot)->since, first.since);
  // It takes twice as long to clear the second time.
  set(machine.sample, R::TemperatureEdge, 50);
  machine.run(50s);
  EXPECT_TRUE(machine.confirmed(kHot));
  machine.run(12s);
  EXPECT_EQ(machine.open(kHot), nullptr);
}

TEST(Engine, AConditionThatReturnsLaterIsANewOne) {
  auto machine = overheated();
  const auto id = machine.open(kHot)->id;
  set(machine.sample, R::TemperatureEdge, 50);
  machine.run(11min);
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  EXPECT_NE(machine.open(kHot)->id, id);
}

TEST(Engine, FluctuatingNumbersAreNotAnnounced) {
  auto machine = overheated();
  machine.forget();
  int n = 0;
  machine.run(1h, 2s, [&](Sample& sample) { set(sample, R::TemperatureEdge, 100 + (++n % 4)); });
  EXPECT_TRUE(machine.changes.empty());
  EXPECT_EQ(machine.open(kHot)->last_seen, machine.clock.now().wall);
  EXPECT_EQ(evidence(*machine.open(kHot), "temperature.edge"), "100 C");  // look 1800: 1800 % 4 = 0
}

TEST(Engine, AnotherHotSensorIsAnnouncedAtMostOnceAMinute) {
  auto machine = overheated();
  machine.run(2min);
  machine.forget();
  int n = 0;
  machine.run(60s, 2s, [&](Sample& sample) { set(sample, R::TemperatureMemory, ++n % 2 == 0 ? 109 : 60); });
  EXPECT_EQ(machine.seen(), (Changes{{Updated, kHot}}));
}

TEST(Engine, WorstConditionsComeFirst) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::PcieWidth, 4);
  machine.run(1min);
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(20s);
  const auto open = machine.engine.open();
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open[0].type, kHot);
  EXPECT_EQ(open[1].type, ConditionType::PcieDowngraded);
}

TEST(Engine, NewThresholdsHoldFromTheNextSample) {
  Machine machine;
  set(machine.sample, R::TemperatureEdge, 96);
  machine.run(1min);
  EXPECT_TRUE(machine.changes.empty());
  Thresholds stricter;
  stricter.overheating_margin_c = 5;
  machine.engine.set_thresholds(stricter);
  machine.run(20s);
  EXPECT_TRUE(machine.confirmed(kHot));
}

TEST(Engine, RestoredConditionsOfThisBootGoOn) {
  const auto past = *overheated().open(kHot);
  Machine machine;
  machine.take(machine.engine.restore({past}, machine.clock.now()));
  EXPECT_TRUE(machine.changes.empty());
  set(machine.sample, R::TemperatureEdge, 101);
  machine.run(1min);
  EXPECT_TRUE(machine.changes.empty());  // announced before
  EXPECT_EQ(machine.open(kHot)->id, past.id);
  set(machine.sample, R::TemperatureEdge, 50);
  machine.run(1min);
  EXPECT_EQ(machine.seen(), (Changes{{Cleared, kHot}}));
}

TEST(Engine, RestoredConditionsOfAnEarlierBootAreCleared) {
  auto past = *overheated().open(kHot);
  past.boot_id = "boot-before";
  Machine machine;
  machine.take(machine.engine.restore({past}, machine.clock.now()));
  ASSERT_EQ(machine.seen(), (Changes{{Cleared, kHot}}));
  EXPECT_EQ(evidence(machine.changes[0].condition, "cleared because"), "the machine was rebooted");
  EXPECT_EQ(machine.changes[0].condition.cleared, machine.clock.now().wall);
  EXPECT_TRUE(machine.engine.open().empty());
}

TEST(Engine, AHistoryThatComesBackLateDoesNotEndWhatGoesOn) {
  auto machine = overheated();
  const auto now_open = *machine.open(kHot);
  const auto before = machine.changes.size();
  machine.take(machine.engine.restore({now_open}, machine.clock.now()));
  EXPECT_EQ(machine.changes.size(), before);
  ASSERT_TRUE(machine.open(kHot));
  EXPECT_EQ(machine.open(kHot)->id, now_open.id);
}

TEST(Engine, RestoreTakesAnything) {
  Condition no_type;
  no_type.type = static_cast<ConditionType>(200);
  no_type.device = "uid-1";
  Condition no_device;
  auto twin = *overheated().open(kHot);
  twin.since += 5s;
  twin.id = "newer";
  Machine machine;
  machine.take(machine.engine.restore({no_type, no_device, *overheated().open(kHot), twin}, machine.clock.now()));
  EXPECT_EQ(machine.seen(), (Changes{{Cleared, kHot}}));
  ASSERT_EQ(machine.engine.open().size(), 1U);
  EXPECT_EQ(machine.engine.open()[0].id, "newer");
}

TEST(Engine, ADeviceIsNamedEvenWithoutAName) {
  auto device = navi31();
  EXPECT_EQ(label_of(device), "Radeon RX 7900 XTX at 0000:03:00.0");
  device.name.clear();
  EXPECT_EQ(label_of(device), "AMD GPU 1002:744c at 0000:03:00.0");
}

}  // namespace
}  // namespace gpuhealth::health
