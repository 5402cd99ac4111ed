// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/render.hpp"
#include "cli/text.hpp"
#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::pipe;
using samples::screen;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

TEST(Status, AHealthyMachineSaysSoInItsFirstLine) {
  const std::string text = render(render_status(samples::healthy(), screen()), screen());
  EXPECT_EQ(text,
            "All 3 GPUs are healthy.\n"
            "\n"
            "GPU            PCI      health    temp  power  busy   MHz   VRAM used  link\n"
            "RX 7900 XTX    03:00.0  ok        62 C  287 W   98%  2479  1.2/24 GiB  x16 Gen4\n"
            "RX 580 Series  09:00.0  ok      asleep\n"
            "MI300X         c3:00.0  ok        62 C  287 W   98%  2479  1.2/24 GiB  x16 Gen4\n"
            "\n"
            "gpuhealthd 0.1.0: sampling, last 2 s ago, history works.\n");
}

TEST(Status, WhatIsWrongComesFirstTheWorstBeforeTheRest) {
  const std::string text = render(render_status(samples::overheating(), pipe()), pipe());
  EXPECT_THAT(text,
              StartsWith("2 of 3 GPUs need attention.\n\nCRITICAL  GPU is overheating\n          AMD Radeon RX "
                         "7900 XTX at 0000:03:00.0\n          The junction is at 112 C; its limit is 110 C. Since "));
  EXPECT_LT(text.find("overheating"), text.find("WARNING"));
  EXPECT_LT(text.find("WARNING"), text.find("VRAM used"));
  EXPECT_THAT(text, HasSubstr("Stop the load, check that all fans turn"));
}

TEST(Status, ThreeGpusWithManyProblemsFitAScreenOf80By24) {
  Machine machine = samples::overheating();
  for (const ConditionInfo& row : all_conditions())
    machine.conditions.push_back(
        samples::condition(row.type, machine.devices[1], "A sentence that is here to take room."));
  machine.manager.store_problem = "disk full: /var/lib/gpuhealthd/history.db";
  const auto lines = lines_of(render(render_status(machine, screen()), screen()));
  EXPECT_LE(lines.size(), 24U);
  for (const auto& line : lines) EXPECT_LE(width(line), 80U) << line;
  EXPECT_TRUE(
      std::ranges::any_of(lines, [](const std::string& l) { return l.ends_with("more: gpuhealthctl conditions"); }));
}

TEST(Status, APipeGetsEveryProblemAndFullNames) {
  Machine machine = samples::overheating();
  machine.devices[0].name = std::string(100, 'N');
  for (int i = 0; i < 20; ++i)
    machine.conditions.push_back(samples::condition(ConditionType::SmuDead, machine.devices[1], ""));
  const std::string text = render(render_status(machine, pipe()), pipe());
  EXPECT_THAT(text, HasSubstr(std::string(100, 'N')));
  EXPECT_THAT(text, Not(HasSubstr("more: gpuhealthctl")));
  EXPECT_THAT(text, Not(HasSubstr("…")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Status, AcknowledgedAndUnconfirmedOnesAreCountedAndNotAnnounced) {
  Machine machine = samples::overheating();
  machine.conditions[0].acknowledged = true;
  machine.conditions[1].state = ConditionState::Raised;
  EXPECT_FALSE(needs_attention(machine.conditions));
  const std::string text = render(render_status(machine, pipe()), pipe());
  EXPECT_THAT(text, StartsWith("All 3 GPUs are healthy.\nAlso open: 1 acknowledged, 1 seen, not yet confirmed: "));
}

TEST(Status, AnInfoNeedsNobodysAttention) {
  Machine machine = samples::overheating();
  for (auto& c : machine.conditions) c.severity = Severity::Info;
  EXPECT_FALSE(needs_attention(machine.conditions));
}

TEST(Status, AMissingGpuIsTheMachinesTrouble) {
  Machine machine = samples::healthy();
  machine.conditions = {samples::condition(ConditionType::GpuMissing, samples::radeon(), "")};
  machine.conditions[0].device = "uid-gone";
  EXPECT_EQ(summary(machine), "The machine needs attention.");
}

TEST(Status, TheDaemonSaysWhatDoesNotWork) {
  Machine machine = samples::healthy();
  machine.manager.store_problem = "disk full";
  machine.now += std::chrono::minutes(5);
  const std::string text = render(render_status(machine, pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("gpuhealthd 0.1.0: no sample for 5 min.\nHistory does not work: disk full\n"));
  machine.devices.clear();
  EXPECT_THAT(render(render_status(machine, pipe()), pipe()), StartsWith("No GPU found.\n"));
}

TEST(Status, OneGpuAndGpusNotYetJudged) {
  Machine machine = samples::healthy();
  machine.devices.resize(1);
  EXPECT_EQ(summary(machine), "The GPU is healthy.");
  machine.devices[0].health = "unknown";
  machine.devices[0].sampled = WallTime();
  EXPECT_EQ(summary(machine), "Nothing is wrong; 1 of 1 GPUs not judged yet.");
  EXPECT_FALSE(needs_attention(machine));
}

TEST(Status, AGpuWhoseValuesAreAllOldIsNotCalledHealthy) {
  Machine machine = samples::healthy();
  machine.devices[0].health = "unknown";
  EXPECT_THAT(summary(machine), StartsWith("No fresh values from 1 of "));
  EXPECT_TRUE(needs_attention(machine)) << "status exits 1";
}

TEST(Changes, NothingChangedSaysNothing) {
  EXPECT_TRUE(changes(samples::overheating(), samples::overheating()).empty());
}

TEST(Changes, AConditionThatComesAndGoesIsTwoLines) {
  const auto came = changes(samples::healthy(), samples::overheating());
  ASSERT_EQ(came.size(), 3U);
  EXPECT_EQ(came[0].kind, "throttle.changed");
  EXPECT_EQ(came[0].text, "AMD Radeon RX 7900 XTX at 0000:03:00.0 is slowed: TEMP_HOTSPOT");
  EXPECT_EQ(came[2].kind, "condition.confirmed");
  EXPECT_EQ(came[2].severity, Severity::Critical);
  const auto went = changes(samples::overheating(), samples::healthy());
  ASSERT_EQ(went.size(), 3U);
  EXPECT_EQ(went[2].kind, "condition.cleared");
}

TEST(Changes, OneThatIsOnlySeenSaysSo) {
  Machine after = samples::healthy();
  after.conditions = {samples::condition(ConditionType::SmuDead, after.devices[2], "")};
  after.conditions[0].state = ConditionState::Raised;
  const auto told = changes(samples::healthy(), after);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, "condition.raised");
  EXPECT_EQ(told[0].severity, Severity::Info);
  EXPECT_THAT(told[0].text, testing::EndsWith("(seen, not yet confirmed)"));
}

TEST(Changes, SleepAndRemovalAreTold) {
  Machine after = samples::healthy();
  after.devices[0].runtime_status = "suspended";
  after.devices.pop_back();
  const auto told = changes(samples::healthy(), after);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].text, "AMD Radeon RX 7900 XTX at 0000:03:00.0 went to sleep");
  EXPECT_EQ(told[1].kind, "device.removed");
}

}  // namespace
}  // namespace gpuhealth::cli
