// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
using C = ConditionType;
constexpr auto kUe = ras_reading(0, RasKind::Uncorrectable);  // umc
constexpr auto kCe = ras_reading(0, RasKind::Correctable);
constexpr auto kDe = ras_reading(0, RasKind::Deferred);

TEST(RasUncorrectable, TheFirstErrorIsOneTooMany) {
  Machine machine;
  set(machine.sample, kUe, 0);
  machine.run(10s);
  EXPECT_EQ(machine.open(C::RasUncorrectable), nullptr);
  set(machine.sample, kUe, 1);
  machine.look();
  machine.run(4s);
  ASSERT_TRUE(machine.confirmed(C::RasUncorrectable));
  EXPECT_EQ(machine.open(C::RasUncorrectable)->severity, Severity::Critical);
  EXPECT_EQ(evidence(*machine.open(C::RasUncorrectable), "ras.umc.uncorrectable"), "1");
}

TEST(RasUncorrectable, ADriverLoadedAnewDoesNotClearItAtOnce) {
  Machine machine;
  set(machine.sample, kUe, 2);
  machine.run(10s);
  set(machine.sample, kUe, 0);
  machine.run(23h, 60s);
  EXPECT_TRUE(machine.confirmed(C::RasUncorrectable));
  machine.run(2h, 60s);
  EXPECT_EQ(machine.open(C::RasUncorrectable), nullptr);
}

TEST(RasUncorrectable, ACountThatIsNotBelievedOrNotReadSaysNothing) {
  Machine machine;
  for (const auto status : {ReadingStatus::Implausible, ReadingStatus::Unreadable, ReadingStatus::Asleep}) {
    set_status(machine.sample, kUe, status);
    machine.run(1min);
  }
  EXPECT_EQ(machine.open(C::RasUncorrectable), nullptr);
}

TEST(RasUncorrectable, TheKernelsWordCountsWhereTheBoardHasNoCounters) {
  Machine machine;
  const auto now = machine.clock.now();
  machine.take(
      machine.engine.on_sign(machine.device, Sign::MemoryError, {now.steady, now.wall, "1 uncorrectable"}, now));
  machine.run(4s);
  ASSERT_TRUE(machine.confirmed(C::RasUncorrectable));
  EXPECT_EQ(machine.open(C::RasUncorrectable)->detail, "The kernel says: 1 uncorrectable");
}

TEST(RasCorrectable, ARateAboveTheLimitIsOne) {
  Machine machine;
  double count = 100;  // from before the daemon: nobody can date it
  machine.run(30min, 10s, [&](Sample& sample) { set(sample, kCe, count); });
  EXPECT_EQ(machine.open(C::RasCorrectable), nullptr);
  count = 124;
  machine.run(1min, 10s, [&](Sample& sample) { set(sample, kCe, count); });
  EXPECT_EQ(machine.open(C::RasCorrectable), nullptr);
  count = 125;
  machine.run(1min, 10s, [&](Sample& sample) { set(sample, kCe, count); });
  ASSERT_TRUE(machine.confirmed(C::RasCorrectable));
  EXPECT_EQ(machine.open(C::RasCorrectable)->detail, "The GPU corrected 25 errors in the last hour.");
}

TEST(RasCorrectable, DeferredErrorsCountToo) {
  Machine machine;
  set(machine.sample, kDe, 0);
  machine.run(10s);
  set(machine.sample, kDe, 30);
  machine.run(10s);
  EXPECT_TRUE(machine.confirmed(C::RasCorrectable));
}

TEST(RasCorrectable, ADriverLoadedAnewStartsTheCountAgain) {
  Machine machine;
  set(machine.sample, kCe, 5000);
  machine.run(10s);
  set(machine.sample, kCe, 0);
  machine.run(10s);
  set(machine.sample, kCe, 20);
  machine.run(10s);
  EXPECT_EQ(machine.open(C::RasCorrectable), nullptr);
}

TEST(BadPages, AListThatGrowsIsAWarning) {
  Machine machine;
  set(machine.sample, R::VramBadPages, 3);
  machine.run(1h, 10s);
  EXPECT_EQ(machine.open(C::BadPages), nullptr);
  set(machine.sample, R::VramBadPages, 5);
  machine.run(20s);
  ASSERT_TRUE(machine.confirmed(C::BadPages));
  EXPECT_EQ(machine.open(C::BadPages)->severity, Severity::Warning);
  EXPECT_TRUE(machine.open(C::BadPages)->detail.starts_with("5 pages of video memory are bad, up from 3"));
}

TEST(BadPages, NearTheDriversThresholdTheCardIsWornOut) {
  Machine machine;
  set(machine.sample, R::VramTotal, 10000.0 * 1024 * 1024);  // 100 pages
  set(machine.sample, R::VramBadPages, 89);
  machine.run(1min);
  EXPECT_EQ(machine.open(C::BadPages), nullptr);
  set(machine.sample, R::VramBadPages, 90);
  machine.run(1min);
  ASSERT_TRUE(machine.confirmed(C::BadPages));
  EXPECT_EQ(machine.open(C::BadPages)->severity, Severity::Critical);
  EXPECT_EQ(evidence(*machine.open(C::BadPages), "worn out at"), "100");
}

TEST(BadPages, OneLookShowsAWornOutCard) {
  auto sample = idle_desktop();
  set(sample, R::VramTotal, 10000.0 * 1024 * 1024);
  set(sample, R::VramBadPages, 95);
  set(sample, kUe, 4);
  std::vector<std::string> types;
  for (const auto& c : judge_once(navi31(), sample, {})) types.emplace_back(info(c.type).name);
  EXPECT_EQ(types, (std::vector<std::string>{"ras-uncorrectable", "bad-pages"}));
}

}  // namespace
}  // namespace gpuhealth::health
