// SPDX-License-Identifier: Apache-2.0
#include "canary/stats/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpuhealth::canary::stats {
namespace {

// A device that is measured every five minutes.
class JudgeTest : public testing::Test {
 protected:
  Measurement triad(double gb_per_s, const std::string& kernel, Gate gate = Gate::Strong) {
    Measurement m;
    m.canary = "triad";
    m.metric = "bandwidth";
    m.unit = "GB/s";
    m.better = Better::Higher;
    m.device = "0000:03:00.0";
    m.value = gb_per_s;
    m.gate = gate;
    m.software = {{"kernel", kernel}, {"vbios", "113-A"}};
    m.epoch = kernel;
    m.time = time_;
    return m;
  }
  // A little noise that is the same each time: +-0.5 %.
  double wobble() { return 1 + 0.005 * std::sin(++n_ * 2.1); }

  std::vector<Finding> run(int runs, double gb_per_s, const std::string& kernel, Gate gate = Gate::Strong) {
    std::vector<Finding> all;
    for (int i = 0; i < runs; ++i) {
      const auto out = judge_.observe(triad(gb_per_s * wobble(), kernel, gate));
      all.insert(all.end(), out.findings.begin(), out.findings.end());
      time_ += out.next_after_s.value_or(300);
    }
    return all;
  }
  static int count(const std::vector<Finding>& findings, FindingKind kind, Level level) {
    int n = 0;
    for (const auto& f : findings) n += f.kind == kind && f.level == level ? 1 : 0;
    return n;
  }

  Judge judge_;
  double time_ = 1764500000;
  int n_ = 0;
};

TEST_F(JudgeTest, AHealthyDeviceSaysNothing) {
  EXPECT_TRUE(run(2000, 800, "6.12.1").empty());
}

TEST_F(JudgeTest, TheBaselineIsTheMedianOfFortyEightRuns) {
  run(47, 800, "6.12.1");
  EXPECT_EQ(judge_.baselines().at(0).state, "learning");
  run(1, 800, "6.12.1");
  const auto b = judge_.baselines().at(0);
  EXPECT_EQ(b.state, "good");
  EXPECT_NEAR(*b.value, 800, 2);
  EXPECT_DOUBLE_EQ(b.sigma, 0.005238852913022042 > b.sigma ? 0.005 : b.sigma);  // the floor, or the wobble's own
}

TEST_F(JudgeTest, ARegressionThatComesWithAKernelIsNeverLearned) {
  run(60, 800, "6.12.1");
  const auto found = run(500, 800 / 1.15, "6.12.2");
  ASSERT_EQ(count(found, FindingKind::Regression, Level::Confirmed), 1);
  const auto& f = found.at(0);
  EXPECT_EQ(f.good_epoch, "6.12.1");
  ASSERT_EQ(f.changed.size(), 1U);
  EXPECT_EQ(f.changed[0].first, "kernel");
  EXPECT_EQ(f.changed[0].second, "6.12.1 -> 6.12.2");
  for (const auto& b : judge_.baselines()) {
    EXPECT_EQ(b.last_known_good, b.epoch == "6.12.1");
    if (b.epoch == "6.12.2") {
      EXPECT_EQ(b.state, "regressed");
    }
  }
  EXPECT_EQ(judge_.open().size(), 1U);
}

TEST_F(JudgeTest, TheNextKernelIsComparedWithTheLastGoodOneNotWithTheRegressedOne) {
  run(60, 800, "6.12.1");
  run(100, 600, "6.12.2");
  const auto found = run(20, 600, "6.12.3");
  EXPECT_EQ(count(found, FindingKind::Regression, Level::Confirmed), 0) << "it is open already";
  EXPECT_FALSE(judge_.open().empty());
  const auto fixed = run(20, 800, "6.12.4");
  EXPECT_GE(
      count(fixed, FindingKind::Collapse, Level::Recovered) + count(fixed, FindingKind::Regression, Level::Recovered),
      1);
  EXPECT_TRUE(judge_.open().empty());
}

TEST_F(JudgeTest, SixRunsBeforeTheUpdateAreEnoughToCompareWith) {
  run(8, 800, "6.12.1");
  EXPECT_EQ(count(run(20, 400, "6.12.2"), FindingKind::Regression, Level::Confirmed), 1);
}

TEST_F(JudgeTest, GoingBackToTheGoodKernelEndsIt) {
  run(60, 800, "6.12.1");
  run(30, 600, "6.12.2");
  const auto back = run(10, 800, "6.12.1");
  EXPECT_EQ(count(back, FindingKind::Regression, Level::Recovered), 1);
  EXPECT_TRUE(judge_.open().empty());
}

TEST_F(JudgeTest, AnEqualKernelBecomesTheLastKnownGood) {
  run(60, 800, "6.12.1");
  EXPECT_TRUE(run(60, 799, "6.12.2").empty());
  for (const auto& b : judge_.baselines()) EXPECT_EQ(b.last_known_good, b.epoch == "6.12.2");
}

TEST_F(JudgeTest, BehindAWeakGateARegressionIsOnlySuspected) {
  run(60, 800, "6.12.1", Gate::Weak);
  const auto found = run(60, 800 / 1.3, "6.12.2", Gate::Weak);
  EXPECT_EQ(count(found, FindingKind::Regression, Level::Suspect), 1);
  for (const auto& f : found) EXPECT_NE(f.level, Level::Confirmed);
}

TEST_F(JudgeTest, TwiceTheTimeIsConfirmedWithinSixMinutes) {
  run(60, 800, "6.12.1");
  const double start = time_;
  const auto found = run(12, 400, "6.12.1");
  ASSERT_EQ(count(found, FindingKind::Collapse, Level::Confirmed), 1);
  for (const auto& f : found) {
    if (f.kind == FindingKind::Collapse && f.level == Level::Confirmed) {
      EXPECT_LE(f.time - start, 360);
    }
  }
}

TEST_F(JudgeTest, SlowDriftIsFoundAgainstTheDevicesOwnBaseline) {
  run(60, 800, "6.12.1");
  const auto found = run(30, 800 / 1.10, "6.12.1");
  ASSERT_EQ(count(found, FindingKind::Drift, Level::Confirmed), 1);
  const auto after = run(40, 800, "6.12.1");
  EXPECT_EQ(count(after, FindingKind::Drift, Level::Recovered), 1);
}

TEST_F(JudgeTest, BusyRunsAreNotJudged) {
  run(60, 800, "6.12.1");
  for (int i = 0; i < 100; ++i) {
    auto m = triad(100, "6.12.1");
    m.status = Status::Busy;
    const auto out = judge_.observe(m);
    EXPECT_FALSE(out.judged);
    EXPECT_TRUE(out.findings.empty());
    time_ += 300;
  }
}

TEST_F(JudgeTest, DeadlinesAreACollapseOfAtLeastTwentyTimes) {
  run(60, 800, "6.12.1");
  std::vector<Finding> found;
  for (int i = 0; i < 8; ++i) {
    auto m = triad(1, "6.12.1", Gate::Weak);
    m.value.reset();
    m.status = Status::Timeout;
    const auto out = judge_.observe(m);
    found.insert(found.end(), out.findings.begin(), out.findings.end());
    time_ += out.next_after_s.value_or(300);
  }
  EXPECT_EQ(count(found, FindingKind::Collapse, Level::Confirmed), 1);
  EXPECT_EQ(count(found, FindingKind::Failing, Level::Suspect), 1);
}

Measurement host_copy(double time, double ms, const std::string& kernel, Status status = Status::Ok) {
  Measurement m;
  m.canary = "h2d_file_rw";
  m.metric = "worst";
  m.device = "0000:03:00.0";
  m.value = ms;
  m.status = status;
  m.time = time;
  m.epoch = kernel;
  m.software = {{"kernel", kernel}};
  m.mappings = std::vector<Mapping>(3, {ms, 2.0, ms * 0.98, 2});
  return m;
}

TEST_F(JudgeTest, TheStallIsConfirmedByTheSecondRunAndNamesTheKernel) {
  judge_.observe(host_copy(1000, 9, "7.0.11"));
  const auto first = judge_.observe(host_copy(2000, 2010, "7.0.12"));
  ASSERT_EQ(first.findings.size(), 1U);
  EXPECT_EQ(first.findings[0].level, Level::Suspect);
  EXPECT_EQ(first.next_after_s, 16.0);
  const auto second = judge_.observe(host_copy(2016, 2010, "7.0.12"));
  ASSERT_EQ(second.findings.size(), 1U);
  EXPECT_EQ(second.findings[0].kind, FindingKind::Stall);
  EXPECT_EQ(second.findings[0].level, Level::Confirmed);
  ASSERT_EQ(second.findings[0].changed.size(), 1U);
  EXPECT_EQ(second.findings[0].changed[0].second, "7.0.11 -> 7.0.12");
}

TEST_F(JudgeTest, AStallIsJudgedOnABusyGpuAndOnOneNeverSeenGood) {
  judge_.observe(host_copy(2000, 2010, "7.0.12", Status::Busy));
  const auto second = judge_.observe(host_copy(2020, 2010, "7.0.12", Status::Busy));
  ASSERT_EQ(second.findings.size(), 1U);
  EXPECT_EQ(second.findings[0].level, Level::Confirmed);
}

TEST_F(JudgeTest, AHealthyRatioOfEightIsNoStallHoweverOften) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(judge_.observe(host_copy(2000 + 20 * i, 16, "7.0.11")).findings.empty());
}

TEST_F(JudgeTest, OneWrongBitIsConfirmedAtOnce) {
  Measurement m = host_copy(10, 1, "6.12");
  m.canary = "checksum";
  m.metric = "mismatches";
  m.mappings.clear();
  m.status = Status::Wrong;
  const auto out = judge_.observe(m);
  ASSERT_EQ(out.findings.size(), 1U);
  EXPECT_EQ(out.findings[0].kind, FindingKind::Wrong);
  EXPECT_EQ(out.findings[0].level, Level::Confirmed);
}

std::vector<Finding> overlap(Judge& judge, double& time, int runs, double fraction, double stretch) {
  std::vector<Finding> all;
  for (int i = 0; i < runs; ++i) {
    Measurement m;
    m.canary = "overlap";
    m.metric = "fraction";
    m.better = Better::Higher;
    m.device = "x";
    m.epoch = "a";
    m.time = time;
    m.value = fraction;
    judge.observe(m);
    m.metric = "stretch";
    m.value = stretch;
    const auto out = judge.observe(m);
    all.insert(all.end(), out.findings.begin(), out.findings.end());
    time += 300;
  }
  return all;
}

TEST_F(JudgeTest, QueuesThatRanInParallelAndNoLongerDoAreConfirmed) {
  double time = 0;
  EXPECT_TRUE(overlap(judge_, time, 5, 0.95, 1.02).empty());
  const auto found = overlap(judge_, time, 3, 0.0, 1.0);
  EXPECT_EQ(count(found, FindingKind::Serialized, Level::Confirmed), 1);
}

TEST_F(JudgeTest, ADeviceWithOneQueueIsNoFaultAndANeighbourIsNone) {
  double time = 0;
  EXPECT_EQ(count(overlap(judge_, time, 30, 0.0, 1.0), FindingKind::Serialized, Level::Confirmed), 0);
  Judge other;
  overlap(other, time, 5, 0.95, 1.02);
  EXPECT_TRUE(overlap(other, time, 30, 0.05, 2.0).empty());
}

TEST_F(JudgeTest, AfterAResetNothingIsKnown) {
  run(60, 800, "6.12.1");
  judge_.reset("0000:03:00.0", "triad");
  EXPECT_TRUE(judge_.baselines().empty());
  EXPECT_TRUE(run(47, 400, "6.12.1").empty());
}

TEST_F(JudgeTest, ASlowFirstRunOnACardThatStatesItsBandwidthIsBelowTheFloor) {
  auto m = triad(380, "6.12.1");
  m.notes["ideal"] = "800";
  const auto out = judge_.observe(m);
  ASSERT_EQ(out.findings.size(), 1U);
  EXPECT_EQ(out.findings[0].kind, FindingKind::Floor);
  EXPECT_EQ(out.findings[0].level, Level::Suspect);
}

TEST(Differences, NameWhatChangedWhatCameAndWhatWent) {
  const auto d =
      differences({{"kernel", "a"}, {"dkms", "1"}, {"same", "s"}}, {{"kernel", "b"}, {"hip", "6"}, {"same", "s"}});
  ASSERT_EQ(d.size(), 3U);
  EXPECT_EQ(d[0], std::make_pair(std::string("dkms"), std::string("1 -> none")));
  EXPECT_EQ(d[1], std::make_pair(std::string("hip"), std::string("none -> 6")));
  EXPECT_EQ(d[2], std::make_pair(std::string("kernel"), std::string("a -> b")));
}

}  // namespace
}  // namespace gpuhealth::canary::stats
