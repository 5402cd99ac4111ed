// SPDX-License-Identifier: Apache-2.0
// Safe mode, the breaker, other managers.
#include "actions/interlocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SafeMode : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SafeMode, WritesNothing) {
  TestMachine m;
  m.write(GetParam().first, GetParam().second);
  const auto before = m.files();
  for (const ActionInfo& row : all_actions()) {
    if (row.kind == ActionKind::Notify) continue;
    std::map<std::string, std::string> params;
    for (const ActionParam& param : params_of(row.kind))
      if (param.required) params[std::string(param.name)] = param.kind == ParamKind::Number ? "1000" : "auto";
    if (row.kind == ActionKind::PowerCap) params["watts"] = "280";
    EXPECT_FALSE(m.run_by_rule(row.kind, params)) << row.name;
    EXPECT_FALSE(m.run(row.kind, params)) << row.name;
  }
  EXPECT_EQ(m.system.calls, 0);
  EXPECT_THAT(m.reboots, IsEmpty());
  EXPECT_EQ(m.files(), before);
}

INSTANTIATE_TEST_SUITE_P(Ways, SafeMode,
                         testing::Values(std::pair{"/proc/cmdline", "root=/dev/sda1 gpuhealth.mode=observe quiet\n"},
                                         std::pair{"/etc/gpuhealthd/observe", ""},
                                         std::pair{"/var/lib/gpuhealthd/safe-mode.json",
                                                   R"({"on": true, "reason": "x"})"},
                                         std::pair{"/var/lib/gpuhealthd/safe-mode.json", "damaged"}));

TEST(SafeModes, AreNamed) {
  TestMachine m;
  EXPECT_THAT(safe_mode(m.machine()), IsEmpty());
  m.write("/proc/cmdline", "quiet gpuhealth.mode=observer xgpuhealth.mode=observe\n");
  EXPECT_THAT(safe_mode(m.machine()), IsEmpty());
  m.write("/etc/gpuhealthd/observe", "");
  EXPECT_THAT(safe_mode(m.machine()), ElementsAre("/etc/gpuhealthd/observe is there"));
}

TEST(SafeModes, APersonCanAlwaysBringBackWhatWasThere) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done);
  m.write("/etc/gpuhealthd/observe", "");
  m.later(std::chrono::hours(1));
  m.system.writes.clear();
  const auto recovered = recover(m.machine());
  ASSERT_TRUE(recovered);
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_THAT(recovered->warnings, ElementsAre(HasSubstr("nothing is written in safe mode")));
  ASSERT_TRUE(revert(m.machine(), done->ledger, true));
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST(SafeModes, WhatCameBackByItselfIsNoSignOfHealth) {
  LedgerEntry lost, back;
  lost.owner = back.owner = "actions";
  lost.steps = back.steps = {value_step("/sys/x", "1")};
  lost.state = "lost";
  back.state = "reverted";
  std::vector<LedgerEntry> entries;
  for (const char* boot : {"a", "b", "c"}) {
    lost.boot_id = back.boot_id = boot;
    entries.push_back(back);
    entries.push_back(lost);
  }
  EXPECT_EQ(boots_without_confirmation(entries), 3);
  entries[4].facts[std::string(kAskedBack)] = "a person";
  EXPECT_EQ(boots_without_confirmation(entries), 0);
}

TEST(SafeModes, ThreeBootsInARowWithoutConfirmationLeadThere) {
  TestMachine m;
  for (int boot = 1; boot <= 3; ++boot) {
    ASSERT_TRUE(safe_mode(m.machine()).empty()) << boot;
    ASSERT_TRUE(m.run_by_rule(ActionKind::PowerCap, {{"watts", "280"}})) << boot;
    m.reboot("boot-" + std::to_string(boot + 1));  // it hangs, and somebody presses the button
    ASSERT_TRUE(recover(m.machine()));
    EXPECT_EQ(m.last().state, "lost");
  }
  EXPECT_THAT(safe_mode(m.machine()), ElementsAre(HasSubstr("3 boots in a row")));
  EXPECT_THAT(m.told, ElementsAre(HasSubstr("2 safe mode")));
  m.system.writes.clear();
  EXPECT_FALSE(m.run_by_rule(ActionKind::PowerCap, {{"watts", "280"}}));
  EXPECT_THAT(m.system.writes, IsEmpty());
  ASSERT_TRUE(leave_safe_mode(m.machine()));
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_THAT(safe_mode(m.machine()), IsEmpty());
}

TEST(SafeModes, ABootInWhichSomethingWasFoundGoodEndsTheRow) {
  TestMachine m;
  for (int boot = 1; boot <= 4; ++boot) {
    const auto done = m.run_by_rule(ActionKind::PowerCap, {{"watts", "280"}});
    ASSERT_TRUE(done) << done.error().text;
    if (boot == 2) {
      ASSERT_TRUE(confirm(m.machine(), done->ledger));
    }
    m.reboot("boot-" + std::to_string(boot + 1));
    ASSERT_TRUE(recover(m.machine()));
  }
  EXPECT_THAT(safe_mode(m.machine()), IsEmpty());
  EXPECT_EQ(m.ledger()[1].state, "over");
}

TEST(Breaker, OpensLoudlyAfterTooManyActionsOfRulesInAnHour) {
  TestMachine m;
  int done = 0;
  for (int i = 0; i < 30; ++i) {
    const auto one = m.run_by_rule(ActionKind::PowerCap, {{"watts", i % 2 == 0 ? "280" : "275"}});
    if (one && one->state == "applied") {
      ASSERT_TRUE(revert(m.machine(), one->ledger, false));
      ++done;
    }
    m.later(std::chrono::minutes(1));
  }
  EXPECT_EQ(done, kBreakerMost);
  EXPECT_THAT(m.told, ElementsAre(HasSubstr("rules have acted 12 times within an hour")));
  EXPECT_THAT(safe_mode(m.machine()), SizeIs(1));
  m.later(std::chrono::hours(48));  // it does not close by itself
  EXPECT_FALSE(m.run_by_rule(ActionKind::PowerCap, {{"watts", "280"}}));
  ASSERT_TRUE(leave_safe_mode(m.machine()));
  EXPECT_TRUE(m.run_by_rule(ActionKind::PowerCap, {{"watts", "280"}}));
}

TEST(OtherManagers, AreSaidInTheOutcomeAndTheLedger) {
  TestMachine m;
  m.write("/proc/811/comm", "power-profiles-\n");
  m.write("/proc/812/comm", "lact\n");
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done);
  EXPECT_THAT(done->warnings, testing::Contains("power-profiles-daemon runs here (pid 811) and may set it again"));
  EXPECT_THAT(m.last().warnings, testing::Contains("LACT runs here (pid 812) and may set it again"));
}

TEST(OtherManagers, ALevelThatSomebodySetByHandIsSaidAndOursIsNot) {
  TestMachine m;
  const std::string level = m.device() + "/power_dpm_force_performance_level";
  m.write(level, "profile_peak\n");
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done);
  EXPECT_THAT(done->warnings, testing::Contains("the performance level is profile_peak: somebody has set it by hand"));
  ASSERT_TRUE(m.run(ActionKind::PerformanceLevel, {{"level", "low"}}));
  const auto again = m.run(ActionKind::PowerCap, {{"watts", "290"}});
  ASSERT_TRUE(again);
  EXPECT_THAT(again->warnings, IsEmpty());
}

TEST(Verdicts, AreTheSameAfterABoot) {
  EXPECT_EQ(verdict_of("overheating-0000:03:00.0-1764515000"), "overheating-0000:03:00.0");
  EXPECT_EQ(verdict_of("by-hand"), "by-hand");
  EXPECT_EQ(verdict_of(""), "");
}

}  // namespace
}  // namespace gpuhealth::actions
