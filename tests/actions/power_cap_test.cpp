// SPDX-License-Identifier: Apache-2.0
// powerN_cap: what is written, once, and that every failure ends with what was there before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::Fault;
using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PowerCap, AFractionOfAWattComesBack) {
  TestMachine m;
  m.write(m.cap(), "303500000\n");
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->before, "303 W");
  ASSERT_TRUE(revert(m.machine(), done->ledger, true));
  EXPECT_EQ(m.last().state, "reverted");
  EXPECT_EQ(m.read(m.cap()).substr(0, 3), "303");
}

TEST(PowerCap, WritesTheLimitOnceAndBringsTheOldOneBackOnce) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(m.cap() + " 280000000"));
  EXPECT_EQ(done->state, "applied");
  EXPECT_EQ(done->before, "303 W");
  EXPECT_EQ(done->after, "280 W");
  EXPECT_EQ(done->confirm_by, "2026-11-30T01:08:20Z");
  m.system.writes.clear();
  const auto back = revert(m.machine(), done->ledger, true);
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(m.cap() + " 303000000"));
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_EQ(m.last().state, "reverted");
}

// Newest first, so that the oldest value is what is left.
TEST(PowerCap, AllThatIsInForceComesBackAtOnce) {
  TestMachine m({sim::idle_card(sim::rx7900xtx(), 0), sim::idle_card(sim::rx6900xt(), 1)});
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "290"}}));
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  auto other = m.order(ActionKind::PowerCap, {{"watts", "200"}});
  other.request.device = m.pci(1);
  ASSERT_TRUE(m.run(other));
  EXPECT_EQ(m.read(m.cap(1)), "200000000");
  const auto all = revert_all(m.machine());
  ASSERT_TRUE(all) << all.error().text;
  EXPECT_THAT(all->warnings, IsEmpty());
  EXPECT_EQ(all->resolved.size(), 3u);
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_EQ(m.read(m.cap(1)), "289000000");
  for (const auto& entry : m.ledger()) EXPECT_EQ(entry.state, "reverted") << entry.id;
}

TEST(PowerCap, WhatCannotComeBackKeepsNothingElseFromIt) {
  TestMachine m({sim::idle_card(sim::rx7900xtx(), 0), sim::idle_card(sim::rx6900xt(), 1)});
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  auto other = m.order(ActionKind::PowerCap, {{"watts", "200"}});
  other.request.device = m.pci(1);
  ASSERT_TRUE(m.run(other));
  m.system.faults[m.cap(1)] = Fault{.error = EIO};
  const auto all = revert_all(m.machine());
  ASSERT_TRUE(all) << all.error().text;
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_EQ(m.read(m.cap(1)), "200000000");
  EXPECT_THAT(all->warnings, ElementsAre(HasSubstr("power1_cap")));
}

TEST(PowerCap, PercentIsOfTheCardsDefaultInWholeWatts) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"percent", "95"}}));
  EXPECT_EQ(m.read(m.cap()), "287000000");  // 303 * 0.95 = 287.85
}

TEST(PowerCap, TheDriversMinimumIsTheFloorAndIsSaid) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "100"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(m.cap() + " 272000000"));
  EXPECT_THAT(done->warnings, ElementsAre(HasSubstr("100 W is below the floor; 272 W is taken")));
}

TEST(PowerCap, WhereTheKernelHasNoMinimumHalfOfTheDefaultIsTheFloor) {
  TestMachine m({sim::idle_card(sim::rx6900xt(), 0)});
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "1"}}));
  EXPECT_EQ(m.read(m.cap()), "145000000");  // half of 289 W, rounded up
}

TEST(PowerCap, NeverAboveTheDefaultUnlessTold) {
  TestMachine m;
  const auto refused = m.run(ActionKind::PowerCap, {{"watts", "320"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_THAT(refused.error().text, HasSubstr("above the card's default of 303 W"));
  EXPECT_THAT(m.system.writes, IsEmpty());
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "320"}, {"above_default", "true"}}));
  EXPECT_EQ(m.read(m.cap()), "320000000");
  EXPECT_FALSE(m.run(ActionKind::PowerCap, {{"watts", "349"}, {"above_default", "true"}}));
}

TEST(PowerCap, ARuleDoesNotRaiseALowerLimit) {
  TestMachine m;
  m.write(m.cap(), "275000000\n");
  const auto done = m.run_by_rule(ActionKind::PowerCap, {{"watts", "290"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->state, "nothing-to-do");
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_THAT(m.ledger(), IsEmpty());
}

TEST(PowerCap, ALoweredDefaultAfterAReloadOfTheDriverIsNotBelieved) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.write(m.cap() + "_default", "280000000\n");
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"percent", "95"}}));
  EXPECT_EQ(m.read(m.cap()), "287000000");
}

TEST(PowerCap, ASecondLimitIsChosenByItsLabel) {
  TestMachine m;
  const std::string second = m.device() + "/hwmon/hwmon2/power2";
  m.write(second + "_cap", "15000000\n");
  m.write(second + "_cap_default", "15000000\n");
  m.write(second + "_cap_max", "29000000\n");
  m.write(second + "_label", "fastPPT\n");
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "10"}, {"domain", "fastPPT"}}));
  EXPECT_THAT(m.system.writes, ElementsAre(second + "_cap 10000000"));
  const auto unknown = m.run(ActionKind::PowerCap, {{"watts", "10"}, {"domain", "slow"}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text, HasSubstr("there is PPT, fastPPT"));
}

TEST(PowerCap, ASleepingGpuIsLeftAsleep) {
  TestMachine m;
  m.write(m.device() + "/power/runtime_status", "suspended\n");
  const auto refused = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("sleeps (suspended)"));
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(PowerCap, EmptyAndZeroFilesAreSaidAndNotWritten) {
  TestMachine m;
  m.write(m.cap(), "\n");
  EXPECT_THAT(m.run(ActionKind::PowerCap, {{"watts", "280"}}).error().text, HasSubstr("is empty"));
  m.write(m.cap(), "0\n");
  m.write(m.cap() + "_default", "0\n");
  EXPECT_THAT(m.run(ActionKind::PowerCap, {{"watts", "280"}}).error().text, HasSubstr("second die"));
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(PowerCap, ADryRunWritesNothingAndSaysWhatItWould) {
  TestMachine m;
  Order order = m.order(ActionKind::PowerCap, {{"watts", "280"}});
  order.dry_run = true;
  const auto done = m.run(order);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->state, "planned");
  EXPECT_THAT(done->steps, ElementsAre("write 280000000 to " + m.cap()));
  EXPECT_EQ(m.system.calls, 0);
}

struct Failure {
  std::string name;
  Fault fault;
  std::string said;
  std::string state;
  std::string left;  // in power1_cap
};
class PowerCapFailure : public testing::TestWithParam<Failure> {};

TEST_P(PowerCapFailure, EndsWithWhatWasThereBefore) {
  TestMachine m;
  m.system.faults["power1_cap"] = GetParam().fault;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr(GetParam().said));
  EXPECT_EQ(m.last().state, GetParam().state);
  EXPECT_EQ(m.read(m.cap()), GetParam().left);
  EXPECT_THAT(m.last().times, testing::Contains(testing::Key(GetParam().state)));
}

INSTANTIATE_TEST_SUITE_P(
    Failures, PowerCapFailure,
    testing::Values(
        Failure{
            "Refused", {.error = EINVAL}, "Invalid argument\nEverything is as it was before", "reverted", "303000000"},
        Failure{"Busy", {.error = EBUSY}, "Everything is as it was before", "reverted", "303000000"},
        Failure{"NoEffect", {.no_effect = true}, "has no effect: it still is 303 W", "reverted", "303000000"},
        Failure{"Clamped",
                {.instead = "290000000", .only_call = 1},
                "280 W was accepted, and 290 W was taken\nEverything is as it was before (303 W)",
                "reverted",
                "303000000"},
        Failure{"Gone", {.then_gone = true}, "The device went away", "lost", ""},
        Failure{
            "ClampedForEver", {.instead = "290000000"}, "could not be brought back", "failed-to-revert", "290000000"}),
    [](const auto& tested) { return tested.param.name; });

TEST(PowerCap, WhatCouldNotBeBroughtBackIsTriedAgainAtTheNextStart) {
  TestMachine m;
  m.system.faults["power1_cap"] = {.instead = "290000000"};
  ASSERT_FALSE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.system.faults.clear();
  const auto done = recover(m.machine());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(m.last().state, "reverted");
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST(PowerCap, WhatSomebodySetsAfterItCouldNotBeBroughtBackIsTheirs) {
  TestMachine m;
  m.system.faults["power1_cap"] = {.instead = "290000000"};
  ASSERT_FALSE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.system.faults.clear();
  m.write(m.cap(), "295000000");
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "overtaken");
  EXPECT_EQ(m.read(m.cap()), "295000000");
}

TEST(PowerCap, AFullDiskDoesNotKeepTheOldLimitFromComingBack) {
  TestMachine m;
  const auto capped = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(capped);
  m.system.room = 0;
  const auto done = revert(m.machine(), capped->ledger, true);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("303 W is back; that cannot be written down"));
  EXPECT_EQ(m.read(m.cap()), "303000000");
  m.system.room = -1;
  ASSERT_TRUE(revert(m.machine(), capped->ledger, true));
  EXPECT_EQ(m.last().state, "reverted");
}

TEST(PowerCap, ADiskThatFillsBetweenIntentAndResultLeavesTheOldLimit) {
  TestMachine m;
  m.system.room = 1;  // the intent
  ASSERT_FALSE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  EXPECT_EQ(m.read(m.cap()), "303000000");
  m.system.room = -1;
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "reverted");
}

TEST(PowerCap, TwoActionsOnOneLimitNeverLoseTheFirstValue) {
  TestMachine m;
  const auto first = m.run(ActionKind::PowerCap, {{"watts", "290"}});
  const auto second = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(first && second);
  m.system.writes.clear();
  ASSERT_TRUE(revert(m.machine(), first->ledger, false));
  EXPECT_THAT(m.system.writes, IsEmpty());  // the second one is in force
  EXPECT_EQ(m.read(m.cap()), "280000000");
  ASSERT_TRUE(revert(m.machine(), second->ledger, false));
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST(PowerCap, InTheOtherOrderEachBringsBackItsOwn) {
  TestMachine m;
  const auto first = m.run(ActionKind::PowerCap, {{"watts", "290"}});
  const auto second = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(revert(m.machine(), second->ledger, false));
  EXPECT_EQ(m.read(m.cap()), "290000000");
  ASSERT_TRUE(revert(m.machine(), first->ledger, false));
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST(PowerCap, WhatSomebodyElseHasSetSinceIsLeftAloneUnlessAPersonAsks) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done);
  m.write(m.cap(), "295000000\n");
  m.system.writes.clear();
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_EQ(m.last().state, "overtaken");
  EXPECT_THAT(m.system.writes, IsEmpty());

  const auto again = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(again);
  m.write(m.cap(), "299000000\n");
  ASSERT_TRUE(revert(m.machine(), again->ledger, true));
  EXPECT_EQ(m.read(m.cap()), "295000000");
}

}  // namespace
}  // namespace gpuhealth::actions
