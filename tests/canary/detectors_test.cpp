// SPDX-License-Identifier: Apache-2.0
// Expected numbers are worked out by hand from the formulas in docs/detection.md.
#include "canary/stats/detectors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpuhealth::canary::stats {
namespace {

TEST(Noise, LongRunVarianceIsFivePointSevenSigmaSquaredAtACorrelationOfSeventyPercent) {
  EXPECT_NEAR(long_run_variance(0.01), 1.7 / 0.3 * 1e-4, 1e-9);
}

TEST(Baseline, TakesMedianAndMadAndNoLessThanTheFloor) {
  // Around 2: distances 0.1, 0, 0.1, 0.2, 0.2 -> MAD 0.1.
  const std::vector<double> runs = {1.9, 2.0, 2.1, 1.8, 2.2};
  const auto b = baseline_of(runs, 0.005);
  EXPECT_DOUBLE_EQ(b.reference, 2.0);
  EXPECT_NEAR(b.sigma, 0.14826, 1e-9);
  EXPECT_DOUBLE_EQ(baseline_of(std::vector<double>{3, 3, 3}, 0.005).sigma, 0.005);
}

TEST(Baseline, MedianOfAnEvenNumberIsTheMean) {
  EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Cusum, ParametersAreScaledByNoise) {
  const auto one = Cusum::parameters(0.01);
  EXPECT_NEAR(one.kappa, 0.04, 1e-12);
  EXPECT_NEAR(one.clip_high, 0.15, 1e-12);
  EXPECT_NEAR(one.threshold, 0.9, 1e-12);
  const auto three = Cusum::parameters(0.03);
  EXPECT_NEAR(three.kappa, 0.09, 1e-12);
  EXPECT_NEAR(three.clip_high, 0.20, 1e-12);
  EXPECT_NEAR(three.threshold, 30 * 5.6667 * 0.0009 / 0.15, 1e-3);  // 1.02
  const auto five = Cusum::parameters(0.05);
  EXPECT_NEAR(five.kappa, 0.14, 1e-12);
  EXPECT_NEAR(five.threshold, 1.70, 0.005);
}

TEST(Cusum, NineRunsAreNeededHoweverBadTheyAre) {
  // Each adds at most 0.15 - 0.04 = 0.11; 0.9 / 0.11 = 8.2.
  Cusum cusum(0.01);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(cusum.step(3.7)) << i;
  EXPECT_TRUE(cusum.step(3.7));
}

TEST(Cusum, TenPercentTakesSeventeenRuns) {
  // ln 1.1 - 0.04 = 0.0553 a run; 0.9 / 0.0553 = 16.3.
  Cusum cusum(0.01);
  int runs = 1;
  while (!cusum.step(std::log(1.10))) ++runs;
  EXPECT_EQ(runs, 17);
}

TEST(Cusum, FourPercentNeverAlarms) {
  Cusum cusum(0.01);
  for (int i = 0; i < 10000; ++i) ASSERT_FALSE(cusum.step(0.0399));
}

TEST(Sprt, SixRunsAtTenPercentSayReachTheAnswer) {
  // Weight (ln 1.10 - ln 1.02) / (5.667e-4 + 0.98e-4) = 0.07551 / 6.647e-4 = 113.6; a run at 1.10x adds 4.29, six 25.7.
  Sprt sprt(0.01);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sprt.step(std::log(1.10)), Sprt::Answer::Undecided);
  EXPECT_EQ(sprt.step(std::log(1.10)), Sprt::Answer::Slower);
  EXPECT_NEAR(sprt.log_likelihood(), 25.7, 0.1);
}

TEST(Sprt, SixEqualRunsAreTheSame) {
  Sprt sprt(0.01);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sprt.step(0), Sprt::Answer::Undecided);
  EXPECT_EQ(sprt.step(0), Sprt::Answer::Same);
}

TEST(Sprt, OneWildRunAmongFiveDecidesNothing) {
  // 5 * -6.54 + 113.6 * (0.2 - 0.0576) = -32.7 + 16.2: the clip bounds it.
  Sprt sprt(0.01);
  for (int i = 0; i < 5; ++i) sprt.step(0);
  EXPECT_EQ(sprt.step(5.0), Sprt::Answer::Same);
}

TEST(Sprt, StaysWithItsAnswer) {
  Sprt sprt(0.01);
  for (int i = 0; i < 6; ++i) sprt.step(0.3);
  EXPECT_EQ(sprt.step(-1), Sprt::Answer::Slower);
}

TEST(Collapse, OneBadRunIsLookedAtAgainAfterFifteenSecondsAndForgottenWhenItWasOne) {
  Collapse c;
  auto step = c.step(1000, std::log(1.6), false, true);
  EXPECT_EQ(step.state, Collapse::State::Checking);
  EXPECT_EQ(step.next_after_s, 15.0);
  EXPECT_EQ(c.step(1015, 0.01, false, true).state, Collapse::State::Calm);
}

TEST(Collapse, JustBelowOnePointFiveIsCalm) {
  Collapse c;
  EXPECT_EQ(c.step(0, std::log(1.49), false, true).state, Collapse::State::Calm);
}

TEST(Collapse, ThreeBadRunsAreSuspectAndThenLookedAtEveryMinute) {
  Collapse c;
  c.step(1000, std::log(1.6), false, true);
  auto step = c.step(1015, std::log(1.45), false, true);
  EXPECT_EQ(step.state, Collapse::State::Checking);
  EXPECT_EQ(step.next_after_s, 45.0);
  step = c.step(1060, std::log(1.6), false, true);
  EXPECT_EQ(step.state, Collapse::State::Suspect);
  EXPECT_EQ(step.next_after_s, 60.0);
}

// A run every minute after the first three; the time from the first at which it is confirmed, or -1.
double confirmed_after(double factor, bool quiet, bool censored = false) {
  Collapse c;
  const double y = std::log(factor);
  c.step(0, y, censored, quiet);
  c.step(15, y, censored, quiet);
  for (double t = 60; t < 7200; t += 60) {
    if (c.step(t, y, censored, quiet).state == Collapse::State::Confirmed) return t;
  }
  return -1;
}

TEST(Collapse, EightfoldIsConfirmedAfterThreeMinutesAlsoWithoutAGate) {
  EXPECT_EQ(confirmed_after(8.1, true), 180);
  EXPECT_EQ(confirmed_after(8.1, false), 180);
  EXPECT_EQ(confirmed_after(1.0, true, true), 180);  // at its deadline
}

TEST(Collapse, TwofoldIsConfirmedAfterFiveMinutesOfQuiet) {
  EXPECT_EQ(confirmed_after(2.0, true), 300);
}

TEST(Collapse, OnePointSixIsConfirmedAfterTenMinutesOfQuiet) {
  EXPECT_EQ(confirmed_after(1.6, true), 600);
}

TEST(Collapse, WithoutProofOfQuietItStaysSuspect) {
  EXPECT_EQ(confirmed_after(2.0, false), -1);
}

TEST(Collapse, ALongPauseIsNoTimeThatWasSeen) {
  Collapse c;
  const double y = std::log(1.6);
  c.step(0, y, false, true);
  c.step(15, y, false, true);
  c.step(60, y, false, true);
  EXPECT_EQ(c.step(3600, y, false, true).state, Collapse::State::Suspect);  // 60 + 150 s seen
}

TEST(Collapse, BadLessThanFourTimesInFiveIsNotConfirmed) {
  Collapse c;
  const double y = std::log(1.6);
  c.step(0, y, false, true);
  c.step(15, y, false, true);
  c.step(60, y, false, true);
  for (int i = 2; i < 60; ++i) {
    const bool good = i % 2 == 0;
    EXPECT_NE(c.step(i * 60, good ? std::log(1.25) : y, false, true).state, Collapse::State::Confirmed) << i;
  }
}

TEST(Collapse, ThreeGoodRunsEndIt) {
  Collapse c;
  const double y = std::log(3);
  c.step(0, y, false, true);
  c.step(15, y, false, true);
  for (double t = 60; t <= 360; t += 60) c.step(t, y, false, true);
  EXPECT_EQ(c.state(), Collapse::State::Confirmed);
  c.step(420, 0, false, true);
  c.step(480, 0, false, true);
  EXPECT_EQ(c.step(540, 0, false, true).state, Collapse::State::Calm);
}

TEST(Stall, WholeSecondsASlotInThreeMappingsAgainstMilliseconds) {
  // 4 MiB, two slots: 2005 ms against 2 ms, the worker's own kernel time beside it.
  const std::vector<Mapping> bad(3, {2005, 2.0, 1990, 2});
  const auto verdict = judge_mappings(bad);
  EXPECT_TRUE(verdict.stalled);
  EXPECT_NEAR(verdict.worst_ratio, 1002.5, 1e-9);
  EXPECT_NEAR(verdict.worst_ms_per_slot, 1002.5, 1e-9);
}

TEST(Stall, AHealthyKernelIsFourToEightTimesItsControl) {
  const std::vector<Mapping> healthy(3, {16, 2.0, 15, 2});
  EXPECT_FALSE(judge_mappings(healthy).stalled);
}

TEST(Stall, EachOfTheFourSignsIsNeeded) {
  EXPECT_FALSE(judge_mappings(std::vector<Mapping>(3, {1790, 2, 1700, 2})).stalled);   // below 900 ms a slot
  EXPECT_FALSE(judge_mappings(std::vector<Mapping>(3, {2005, 70, 1990, 2})).stalled);  // 28.6 times
  EXPECT_FALSE(judge_mappings(std::vector<Mapping>(3, {2005, 2, 90, 2})).stalled);     // waited, did not spin
  std::vector<Mapping> two_of_three(3, {2005, 2, 1990, 2});
  two_of_three[1].ms = 12;
  EXPECT_FALSE(judge_mappings(two_of_three).stalled);
  EXPECT_FALSE(judge_mappings(std::vector<Mapping>(2, {2005, 2, 1990, 2})).stalled);
}

TEST(Stall, AtTheLimitsItIsOne) {
  EXPECT_TRUE(judge_mappings(std::vector<Mapping>(3, {1800, 60, 100, 2})).stalled);
}

TEST(Stall, TwoRunsAtLeastFifteenSecondsApartConfirm) {
  Stall stall;
  EXPECT_EQ(stall.step(100, true), Stall::State::Suspect);
  EXPECT_EQ(stall.step(114.9, true), Stall::State::Suspect);
  EXPECT_EQ(stall.step(115, true), Stall::State::Confirmed);
  EXPECT_EQ(stall.step(400, false), Stall::State::Healthy);
}

TEST(Stall, AHealthyRunBetweenBeginsAnew) {
  Stall stall;
  stall.step(0, true);
  stall.step(20, false);
  EXPECT_EQ(stall.step(40, true), Stall::State::Suspect);
}

TEST(Overlap, TimestampsTellSerializationFromContention) {
  EXPECT_EQ(judge_overlap(0.0, 1.0), Overlap::Serialized);
  EXPECT_EQ(judge_overlap(0.49, 2.0),
            Overlap::Contended);  // 603 ms of 1224, kernels stretched: seen with a busy neighbour
  EXPECT_EQ(judge_overlap(0.95, 1.05), Overlap::Parallel);
  EXPECT_EQ(judge_overlap(0.3, 1.1), Overlap::Unclear);
}

TEST(Fleet, FiveMachinesThatAllLoseThreePercentAreEnough) {
  // Identical ratios: sigma is its floor of 1 %, z = 0.02956 / (1.2533 * 0.01 / sqrt 5) = 5.27; seven: 6.24.
  EXPECT_FALSE(judge_fleet(std::vector<double>(5, std::log(1.03))).slower);
  const auto seven = judge_fleet(std::vector<double>(7, std::log(1.03)));
  EXPECT_TRUE(seven.slower);
  EXPECT_NEAR(seven.z, 6.24, 0.01);
  EXPECT_NEAR(seven.ratio, 1.03, 1e-9);
}

TEST(Fleet, FourMachinesAreTooFewAndOnePercentTooLittle) {
  EXPECT_FALSE(judge_fleet(std::vector<double>(4, std::log(2.0))).slower);
  EXPECT_FALSE(judge_fleet(std::vector<double>(1000, std::log(1.014))).slower);
  EXPECT_TRUE(judge_fleet(std::vector<double>(5, std::log(2.0))).slower);
}

}  // namespace
}  // namespace gpuhealth::canary::stats
