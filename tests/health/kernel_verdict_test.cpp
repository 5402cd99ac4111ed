// SPDX-License-Identifier: Apache-2.0
// The verdict on a kernel from the canaries' results of one boot.
#include "health/kernel_verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuhealth::health {
namespace {

using Answer = KernelJudgement::Answer;
using testing::HasSubstr;

constexpr SteadyTime kStart{1'000'000};
constexpr SteadyTime kLater{1'000'000 + 16LL * 60 * 1'000'000};  // beyond a quarter of an hour
const std::string kGpu = "0000:03:00.0";

class Verdict : public testing::Test {
 protected:
  Verdict() { verdict.gpus({kGpu}); }
  // A run that measured one triad of so many GB/s under this kernel.
  void run(double value, const std::string& kernel, bool judged = true) {
    canary::Measurement m;
    m.canary = "triad";
    m.metric = "bandwidth";
    m.unit = "GB/s";
    m.better = canary::Better::Higher;
    m.device = kGpu;
    m.value = value;
    m.time = 1000 + 60 * ++runs;
    m.epoch = kernel;
    m.gate = canary::Gate::Strong;
    observe(m, judged);
  }
  void observe(const canary::Measurement& m, bool judged = true) {
    const auto outcome = watch.observe(m);
    if (!judged) return;
    verdict.measured(m, outcome, watch.baselines());
    verdict.run_ended(m.device);
  }
  // What was kept of the good kernel: 48 runs of 1000 GB/s, 0.4 % around.
  void good_kernel() {
    for (int i = 0; i < 48; ++i) run(1000 + (i % 3 - 1) * 4, "good", false);
  }
  CanaryWatch watch;
  KernelVerdict verdict{{6, std::chrono::minutes(15)}, kStart};
  int runs = 0;
};

TEST_F(Verdict, AsFastAsUnderTheGoodKernelPasses) {
  good_kernel();
  EXPECT_EQ(verdict.judge(kStart).answer, Answer::Waiting);
  for (int i = 0; i < 6; ++i) run(998, "new");
  const auto judged = verdict.judge(kStart);
  EXPECT_EQ(judged.answer, Answer::Passed) << judged.why;
  EXPECT_THAT(judged.why, HasSubstr("as good as under the last known good kernel"));
}

TEST_F(Verdict, SlowerThanUnderTheGoodKernelFails) {
  good_kernel();
  for (int i = 0; i < 6; ++i) run(500, "new");
  const auto judged = verdict.judge(kStart);
  EXPECT_EQ(judged.answer, Answer::Failed) << judged.why;
  EXPECT_THAT(judged.why, HasSubstr("triad takes 2.00x of its usual time"));
}

// The finding itself was told to an earlier one: that of a daemon that was restarted, or whose verdict was not written.
TEST_F(Verdict, SlowerIsNotPassedByOneThatBeganLater) {
  good_kernel();
  for (int i = 0; i < 12; ++i) run(500, "new", false);
  for (int i = 0; i < 8; ++i) run(500, "new");
  EXPECT_EQ(verdict.judge(kStart).answer, Answer::Waiting);
  EXPECT_EQ(verdict.judge(kLater).answer, Answer::Failed);
}

TEST_F(Verdict, AWrongResultFailsAtOnce) {
  canary::Measurement m;
  m.canary = "triad";
  m.metric = "bandwidth";
  m.device = kGpu;
  m.time = 1000;
  m.epoch = "new";
  m.status = canary::Status::Wrong;
  observe(m);
  EXPECT_EQ(verdict.judge(kStart).answer, Answer::Failed);
}

TEST_F(Verdict, WithoutAnEarlierKernelGoodRunsAreEnough) {
  for (int i = 0; i < 5; ++i) run(1000, "first");
  EXPECT_THAT(verdict.judge(kStart).why, HasSubstr(kGpu + " has 5 of 6 good runs"));
  run(1000, "first");
  const auto judged = verdict.judge(kStart);
  EXPECT_EQ(judged.answer, Answer::Passed) << judged.why;
  EXPECT_THAT(judged.why, HasSubstr("no earlier kernel to compare with"));
}

TEST_F(Verdict, WhatWasNotMeasuredIsNoVerdictHoweverLong) {
  canary::Measurement m;
  m.canary = "triad";
  m.metric = "bandwidth";
  m.device = kGpu;
  m.time = 1000;
  m.status = canary::Status::Busy;
  m.reason = "pid 7 (python) uses it";
  observe(m);
  const auto judged = verdict.judge(kLater);
  EXPECT_EQ(judged.answer, Answer::Waiting);
  EXPECT_EQ(judged.why, kGpu + " has 0 of 6 good runs (triad: busy, pid 7 (python) uses it)");
  verdict.gpus({});
  EXPECT_THAT(verdict.judge(kLater).why, HasSubstr("no GPU to measure"));
}

TEST_F(Verdict, EachGpuHasToPass) {
  verdict.gpus({kGpu, "0000:04:00.0"});
  for (int i = 0; i < 6; ++i) run(1000, "first");
  EXPECT_THAT(verdict.judge(kLater).why, HasSubstr("0000:04:00.0 has 0 of 6"));
}

TEST_F(Verdict, AFaultThatTheKernelBroughtFails) {
  verdict.fault("a GPU is gone");
  EXPECT_EQ(verdict.judge(kStart).answer, Answer::Failed);
  EXPECT_EQ(verdict.judge(kStart).why, "a GPU is gone");
}

}  // namespace
}  // namespace gpuhealth::health
