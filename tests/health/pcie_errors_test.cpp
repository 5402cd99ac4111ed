// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kErrors = ConditionType::PcieErrors;

TEST(PcieErrors, WhatWasCountedBeforeTheFirstLookIsTheBaseline) {
  Machine machine;
  set(machine.sample, R::AerCorrectable, 1'000'000);
  set(machine.sample, R::AerNonfatal, 12);
  set(machine.sample, R::AerFatal, 3);
  set(machine.sample, R::PcieReplays, 70'000);
  machine.run(2h, 10s);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieErrors, AStormOfCorrectedErrorsIsConfirmedAtOnceWhenTheHourIsFull) {
  Machine machine;
  machine.run(10s);
  double count = 0;
  machine.run(10s, 2s, [&](Sample& sample) { set(sample, R::AerCorrectable, count += 96); });
  EXPECT_TRUE(machine.changes.empty());  // 480, and more than 480 are needed
  machine.run(2s, 2s, [&](Sample& sample) { set(sample, R::AerCorrectable, count += 1); });
  ASSERT_TRUE(machine.confirmed(kErrors));
  EXPECT_EQ(machine.open(kErrors)->severity, Severity::Warning);
  EXPECT_EQ(machine.open(kErrors)->detail, "The PCIe link counted 481 corrected errors in the last hour.");
  EXPECT_EQ(evidence(*machine.open(kErrors), "aer.correctable"), "481");
}

TEST(PcieErrors, SevenReplaysAMinuteNeverRaise) {
  Machine machine;
  double count = 0;
  machine.run(24h, 60s, [&](Sample& sample) { set(sample, R::PcieReplays, count += 7); });
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieErrors, NineReplaysAMinuteRaiseWithinTheHour) {
  Machine machine;
  double count = 0;
  machine.run(1h, 60s, [&](Sample& sample) { set(sample, R::PcieReplays, count += 9); });
  EXPECT_TRUE(machine.confirmed(kErrors));
}

TEST(PcieErrors, OneUncorrectedErrorWarnsAndOneFatalErrorIsCritical) {
  Machine machine;
  machine.run(10s);
  set(machine.sample, R::AerNonfatal, 1);
  machine.run(2s);
  ASSERT_TRUE(machine.confirmed(kErrors));
  EXPECT_EQ(machine.open(kErrors)->severity, Severity::Warning);
  machine.forget();
  set(machine.sample, R::AerFatal, 1);
  machine.run(2s);
  ASSERT_EQ(machine.seen(), (std::vector<Seen>{{ChangeKind::Updated, kErrors}}));
  EXPECT_EQ(machine.changes[0].condition.severity, Severity::Critical);
  EXPECT_EQ(machine.changes[0].condition.detail, "The PCIe link counted 1 fatal errors in the last hour.");
}

TEST(PcieErrors, ACounterThatRestartsIsNoIncrease) {
  Machine machine;
  set(machine.sample, R::AerCorrectable, 100'000);
  set(machine.sample, R::AerNonfatal, 5);
  machine.run(10s);
  set(machine.sample, R::AerCorrectable, 400);
  set(machine.sample, R::AerNonfatal, 4);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieErrors, WhatTheLinkCountsWhileTheMachineSleepsSaysNothing) {
  Machine machine;
  machine.run(10s);
  machine.pass(8h);
  set(machine.sample, R::AerCorrectable, 5'000);
  set(machine.sample, R::AerNonfatal, 1);
  set(machine.sample, R::PcieReplays, 5'000);
  machine.run(1min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieErrors, AnUnknownCounterIsNotZero) {
  Machine machine;
  set(machine.sample, R::AerNonfatal, 7);
  machine.run(10s);
  set_status(machine.sample, R::AerNonfatal, ReadingStatus::Unreadable);
  machine.run(10s);
  set(machine.sample, R::AerNonfatal, 7);
  machine.run(10s);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieErrors, ClearsAnHourAfterTheRateHasFallen) {
  Machine machine;
  machine.run(10s);
  set(machine.sample, R::AerCorrectable, 1'000);
  machine.run(10s);
  ASSERT_TRUE(machine.confirmed(kErrors));
  machine.run(119min, 30s);
  EXPECT_TRUE(machine.confirmed(kErrors));
  machine.run(3min, 30s);
  EXPECT_EQ(machine.open(kErrors), nullptr);
}

TEST(PcieErrors, OneLookNeverSuffices) {
  auto sample = idle_desktop();
  set(sample, R::AerFatal, 4);
  EXPECT_TRUE(judge_once(navi31(), sample, {}).empty());
}

}  // namespace
}  // namespace gpuhealth::health
