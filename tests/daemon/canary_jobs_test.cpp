// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_jobs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

namespace gpuhealth::daemon {
namespace {

class CanaryJobsTest : public testing::Test {
 protected:
  CanaryJobs::Handlers handlers() {
    CanaryJobs::Handlers on;
    on.run = [this](const std::string& pci, int tier, const std::vector<std::string>& only) -> Result<void> {
      ran.push_back(pci + " " + std::to_string(tier) + " " + (only.empty() ? "all" : only.front()));
      if (refusal) return fail(*refusal, "not now");
      return {};
    };
    on.cancel = [this](const std::string& pci) { stopped.push_back(pci); };
    on.show = [this](const dbus::JobView& job) { shown[job.id] = job; };
    on.hide = [this](const std::string& id) { shown.erase(id); };
    return on;
  }
  static canary::Measurement result(const std::string& device) {
    canary::Measurement m;
    m.canary = "triad";
    m.device = device;
    m.value = 800;
    return m;
  }
  const std::vector<CanaryJobs::Device> one = {{"0000:03:00.0", "uid-9", "a card"}};
  const std::vector<CanaryJobs::Device> two = {{"0000:03:00.0", "uid-9", "a card"},
                                               {"0000:0a:00.0", "uid-a", "another"}};
  ManualClock clock;
  std::optional<ErrorCode> refusal;
  std::vector<std::string> ran, stopped;
  std::map<std::string, dbus::JobView> shown;
  CanaryJobs jobs{clock, handlers()};
};

TEST_F(CanaryJobsTest, RunsAndKeepsTheResultsOfItsGpuAlone) {
  const auto id = jobs.start({"", 2, {"triad"}}, one);
  ASSERT_TRUE(id);
  EXPECT_EQ(ran, std::vector<std::string>{"0000:03:00.0 2 triad"});
  EXPECT_EQ(shown[*id].state, "running");
  EXPECT_EQ(shown[*id].device, "uid-9");
  jobs.measured(result("0000:0a:00.0"));
  jobs.measured(result("0000:03:00.0"));
  EXPECT_EQ(shown[*id].results.size(), 1U);
  jobs.run_ended("0000:0a:00.0", {});
  EXPECT_EQ(shown[*id].state, "running");
  jobs.run_ended("0000:03:00.0", {});
  EXPECT_EQ(shown[*id].state, "done");
}

TEST_F(CanaryJobsTest, ThereIsOneOnAGpu) {
  ASSERT_TRUE(jobs.start({"uid-9", 1, {}}, two));
  const auto second = jobs.start({"0000:03:00.0", 1, {}}, two);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Exhausted);
  EXPECT_TRUE(jobs.start({"0000:0a:00.0", 1, {}}, two)) << "the other GPU is free";
}

TEST_F(CanaryJobsTest, WhichGpuAndWhichCanaryMustBeKnown) {
  EXPECT_EQ(jobs.start({"", 1, {}}, two).error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(jobs.start({"", 1, {}}, {}).error().code, ErrorCode::NotFound);
  EXPECT_EQ(jobs.start({"0000:99:00.0", 1, {}}, two).error().code, ErrorCode::NotFound);
  EXPECT_EQ(jobs.start({"", 1, {"no-such"}}, one).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(ran.empty());
}

TEST_F(CanaryJobsTest, WaitsForTheRunThatIsUnderWayAndTenMinutesAtMost) {
  refusal = ErrorCode::Exhausted;
  const auto id = jobs.start({"", 1, {}}, one);
  ASSERT_TRUE(id);
  EXPECT_EQ(shown[*id].state, "waiting");
  jobs.measured(result("0000:03:00.0"));
  jobs.run_ended("0000:03:00.0", {});
  EXPECT_EQ(shown[*id].state, "waiting") << "that was the daemon's own run";
  EXPECT_TRUE(shown[*id].results.empty());
  refusal.reset();
  jobs.look();
  EXPECT_EQ(shown[*id].state, "running");
  jobs.run_ended("0000:03:00.0", "cannot start");
  EXPECT_EQ(shown[*id].state, "failed");
  EXPECT_EQ(shown[*id].reason, "cannot start");

  refusal = ErrorCode::Exhausted;
  const auto late = jobs.start({"", 1, {}}, one);
  clock.advance(std::chrono::minutes(11));
  jobs.look();
  EXPECT_EQ(shown[*late].state, "failed");
}

TEST_F(CanaryJobsTest, WhatMayNotRunIsRefusedAtOnce) {
  refusal = ErrorCode::Unavailable;
  const auto id = jobs.start({"", 1, {}}, one);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::Unavailable);
  EXPECT_TRUE(shown.empty());
}

TEST_F(CanaryJobsTest, ACancelledOneEndsWithItsWorker) {
  const auto id = jobs.start({"", 1, {}}, one);
  ASSERT_TRUE(jobs.cancel(*id, "its asker left the bus"));
  EXPECT_EQ(stopped, std::vector<std::string>{"0000:03:00.0"});
  EXPECT_FALSE(jobs.start({"", 1, {}}, one)) << "the worker is still there";
  jobs.run_ended("0000:03:00.0", {});
  EXPECT_EQ(shown[*id].state, "cancelled");
  EXPECT_EQ(shown[*id].reason, "its asker left the bus");
  EXPECT_FALSE(jobs.cancel(*id, "again"));
  EXPECT_TRUE(jobs.start({"", 1, {}}, one));
}

TEST_F(CanaryJobsTest, OnlyTheLastSixteenAreKept) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(jobs.start({"", 1, {}}, one));
    jobs.run_ended("0000:03:00.0", {});
  }
  EXPECT_EQ(shown.size(), 17U);  // and the one that was just asked for
  EXPECT_FALSE(shown.contains("run1"));
  EXPECT_TRUE(shown.contains("run20"));
}

}  // namespace
}  // namespace gpuhealth::daemon
