// SPDX-License-Identifier: Apache-2.0
// What the start after a trial makes of what it finds.
#include "grub/at_start.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grub/last_good.hpp"
#include "machine.hpp"

namespace gpuhealth::grub {
namespace {

using test::DebianMachine;
using test::kNew;
using test::kOld;
using testing::HasSubstr;
using testing::IsEmpty;
using S = QualificationState;
using E = QualificationEvent;

// kOld is pinned and runs, kNew is on trial, armed in "boot-1".
class AfterATrial : public testing::Test {
 protected:
  AfterATrial() {
    EXPECT_TRUE(machine.perform(Operation::Pin, kOld));
    EXPECT_TRUE(machine.perform(Operation::Trial, kNew));
  }
  void runs(const std::string& release) { machine.made.file("/proc/sys/kernel/osrelease", release + "\n"); }
  // GRUB takes the one-shot; `mark` is what the trial's entry left in grubenv.
  void grub_took_it(const std::string& mark) {
    machine.boot_once();
    machine.made.file("/boot/grub/grubenv",
                      with_value(machine.made.read("/boot/grub/grubenv"), "gpuhealth_trial", mark).value());
  }
  StartReport start(const std::string& boot, const std::string& ended_in_order = {}) {
    Surroundings surroundings = machine.surroundings();
    surroundings.boot_id = boot;
    const auto report = at_start(machine.made.tree(), surroundings, ended_in_order);
    EXPECT_TRUE(report) << report.error().text;
    return report.value_or(StartReport{});
  }
  [[nodiscard]] Qualification of(const std::string& release) const {
    return read_qualifications(machine.made.tree()).kernels[release];
  }
  Result<Outcome> verdict(Operation operation, const std::string& release, E event, const std::string& reason = {}) {
    return perform(machine.made.tree(), {operation, release, {}, event, reason, {"gpu-1"}}, machine.surroundings());
  }
  DebianMachine machine;
};

TEST_F(AfterATrial, NothingIsConcludedInTheBootThatArmedIt) {
  runs(kOld);
  const auto report = start("boot-1");
  EXPECT_EQ(of(kNew).state, S::TrialArmed);
  EXPECT_EQ(machine.boots(), kNew);
  EXPECT_FALSE(report.cleared);
}

TEST_F(AfterATrial, TheTrialThatRunsIsBooted) {
  grub_took_it("started");
  runs(kNew);
  const auto report = start("boot-2");
  EXPECT_EQ(report.state, S::Booted);
  EXPECT_TRUE(report.on_trial);
  EXPECT_EQ(machine.boots(), kOld);  // until it is blessed
  EXPECT_EQ(of(kNew).seen_in_boot, "boot-2");
}

TEST_F(AfterATrial, TheCanariesWordMakesItTheOneThatBoots) {
  grub_took_it("started");
  runs(kNew);
  start("boot-2");
  EXPECT_THAT(verdict(Operation::Bless, kNew, E::CanariesPassed).error().text, HasSubstr("means nothing there"));
  ASSERT_TRUE(note_event(machine.made.tree(), kNew, E::CanariesStarted, {}, machine.surroundings()));
  ASSERT_TRUE(verdict(Operation::Bless, kNew, E::CanariesPassed));
  EXPECT_EQ(of(kNew).state, S::Blessed);
  EXPECT_FALSE(of(kNew).on_trial());
  EXPECT_THAT(of(kNew).gpus, testing::ElementsAre("gpu-1"));
  EXPECT_EQ(machine.boots(), kNew);
  EXPECT_EQ(machine.made.read("/boot/grub/grubenv"), test::grubenv("saved_entry=users-own\n"));
}

TEST_F(AfterATrial, ThatFailedItsCanariesTheGoodKernelBoots) {
  grub_took_it("started");
  runs(kNew);
  start("boot-2");
  ASSERT_TRUE(note_event(machine.made.tree(), kNew, E::CanariesStarted, {}, machine.surroundings()));
  ASSERT_TRUE(verdict(Operation::Reject, kNew, E::CanariesFailed, "triad takes 2.00x of its usual time"));
  EXPECT_EQ(of(kNew).state, S::Rejected);
  EXPECT_EQ(of(kNew).reason, "triad takes 2.00x of its usual time");
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(read_choices(machine.made.tree()).trial, "");
}

TEST_F(AfterATrial, OneThatWasStartedAndIsGoneNeverCameBack) {
  grub_took_it("started");
  runs(kOld);
  machine.made.file("/sys/fs/pstore/dmesg-efi-1",
                    "Panic#1 Part1\n<0>[ 2.1] Kernel panic - not syncing: VFS\n<0>[ 2.2] x\n");
  start("boot-3");
  EXPECT_EQ(of(kNew).state, S::NeverCameBack);
  EXPECT_THAT(of(kNew).reason, HasSubstr("its trial was started and " + kOld + " runs now"));
  EXPECT_THAT(of(kNew).reason, HasSubstr("(Kernel panic - not syncing: VFS)"));
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(machine.made.read("/boot/grub/grubenv"), test::grubenv("saved_entry=users-own\n"));
  EXPECT_FALSE(machine.made.exists("/etc/grub.d/06_gpuhealth") &&
               machine.made.read("/etc/grub.d/06_gpuhealth").find("stored_trial()") != std::string::npos);
}

TEST_F(AfterATrial, AnotherSystemMeanwhileIsNotNeverCameBack) {
  grub_took_it("armed");  // its own entry was not started: something else was chosen in the menu
  runs(kOld);
  start("boot-3");
  EXPECT_EQ(of(kNew).state, S::Installed);
  EXPECT_EQ(of(kNew).trials, 0);
  EXPECT_THAT(of(kNew).reason, HasSubstr("something else was chosen"));
  EXPECT_EQ(machine.boots(), kOld);
}

TEST_F(AfterATrial, AForgottenOneShotIsCleared) {
  runs(kOld);  // GRUB did not see what was written before the power went
  const auto report = start("boot-2");
  EXPECT_TRUE(report.cleared);
  EXPECT_EQ(of(kNew).state, S::Installed);
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(machine.made.read("/boot/grub/grubenv"), test::grubenv("saved_entry=users-own\n"));
}

TEST_F(AfterATrial, OneThatNobodyKnowsOfIsClearedToo) {
  std::filesystem::remove(machine.made.root() + "/var/lib/gpuhealthd/kernel.json");
  std::filesystem::remove(machine.made.root() + "/var/lib/gpuhealthd/qualification.json");
  runs(kOld);
  EXPECT_TRUE(start("boot-2").cleared);
  EXPECT_EQ(test::next_of(machine.made.boot()), test::lasting_of(machine.made.boot()));
}

TEST_F(AfterATrial, AnOrderlyShutdownInTheMiddleIsNoFailure) {
  grub_took_it("started");
  runs(kNew);
  start("boot-2");
  ASSERT_TRUE(note_event(machine.made.tree(), kNew, E::CanariesStarted, {}, machine.surroundings()));
  runs(kOld);
  start("boot-3", "boot-2");
  EXPECT_EQ(of(kNew).state, S::Installed);
  EXPECT_THAT(of(kNew).reason, HasSubstr("shut down in order"));
}

TEST_F(AfterATrial, OneThatHangsWhileItsCanariesRunNeverCameBack) {
  grub_took_it("started");
  runs(kNew);
  start("boot-2");
  ASSERT_TRUE(note_event(machine.made.tree(), kNew, E::CanariesStarted, {}, machine.surroundings()));
  runs(kOld);
  start("boot-3", "boot-1");
  EXPECT_EQ(of(kNew).state, S::NeverCameBack);
  EXPECT_THAT(of(kNew).reason, HasSubstr("while its canaries ran"));
}

TEST_F(AfterATrial, AKernelIsTriedOnceWithoutAPersonsWord) {
  grub_took_it("started");
  runs(kOld);
  start("boot-3");
  const auto again = [&](bool by_itself) {
    return perform(machine.made.tree(), {Operation::Trial, kNew, {}, std::nullopt, {}, {}, by_itself},
                   machine.surroundings());
  };
  const auto refused = again(true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("never-came-back; a person may: gpuhealthctl kernel trial " + kNew));
  EXPECT_TRUE(again(false));
}

// The distribution would start kNew: the pin of the trial stays when kNew is found bad, and goes when another one was.
TEST(ATrialWithoutAPin, KeepsTheBadOneAway) {
  DebianMachine machine;
  machine.made.file("/proc/sys/kernel/osrelease", kOld + "\n");
  ASSERT_TRUE(machine.perform(Operation::Trial, kNew));
  machine.boot_once();
  ASSERT_TRUE(machine.perform(Operation::Reject, kNew));
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, kOld);
}

TEST(ATrialWithoutAPin, GivesTheDistributionsChoiceBackWhenThatIsAnother) {
  DebianMachine machine;
  const auto before = machine.files();
  machine.made.file("/proc/sys/kernel/osrelease", kNew + "\n");
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  machine.boot_once();
  ASSERT_TRUE(machine.perform(Operation::Reject, kOld));
  EXPECT_EQ(machine.boots(), kNew);
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, "");
  EXPECT_FALSE(machine.made.exists("/etc/grub.d/06_gpuhealth"));
}

TEST(Verdict, OnAKernelThatNothingSteersTouchesTheVerdictsAlone) {
  DebianMachine machine;
  auto before = machine.files();
  ASSERT_TRUE(machine.perform(Operation::Bless, kNew));
  auto after = machine.files();
  EXPECT_EQ(after.erase("/var/lib/gpuhealthd/qualification.json"), 1U);
  EXPECT_EQ(after, before);
  EXPECT_THAT(machine.perform(Operation::Bless, "9.9.9").error().text, HasSubstr("there is no kernel 9.9.9"));
}

TEST(Verdict, ARejectedDefaultIsReplacedByTheLastGoodKernel) {
  DebianMachine machine;
  machine.made.file("/proc/sys/kernel/osrelease", kNew + "\n");
  EXPECT_THAT(machine.perform(Operation::Reject, kNew)->warnings,
              testing::Contains(HasSubstr("goes on being what boots")));
  EXPECT_EQ(machine.boots(), kNew);
  ASSERT_TRUE(machine.perform(Operation::Bless, kOld));
  ASSERT_TRUE(machine.perform(Operation::Reject, kNew));
  EXPECT_EQ(machine.boots(), kOld);
}

TEST(LastKnownGood, IsTheNewestThatWasBlessedWithTheseGpus) {
  DebianMachine machine({"6.1.0-57-amd64", kNew, kOld});
  const auto inventory = take_inventory(machine.made.tree());
  ASSERT_TRUE(inventory);
  Qualifications all;
  EXPECT_EQ(last_known_good(*inventory, all, {}), "");
  const std::vector<std::string> mine = {"gpu-1"};
  all.kernels[kOld] = {S::Blessed, "", "", 900, 0, "", "", {"gpu-1"}};
  all.kernels[kNew] = {S::Blessed, "", "", 100, 0, "", "", {"gpu-2"}};
  all.kernels["6.1.0-57-amd64"].state = S::Rejected;
  EXPECT_EQ(last_known_good(*inventory, all, mine), kOld);
  EXPECT_EQ(last_known_good(*inventory, all, mine, kOld), kNew);
  EXPECT_EQ(last_known_good(*inventory, all, {}), kNew);
  all.kernels[kNew].build = "#1 of another day";
  EXPECT_EQ(last_known_good(*inventory, all, {}), kOld);
}

BootSigns signs(const std::string& running, const std::string& build) {
  BootSigns out;
  out.running = running;
  out.build = build;
  out.boot_id = "b";
  return out;
}

TEST(WhatBecame, FirstBootOfAKernelIsSeen) {
  const auto out = what_became({}, signs("6.1", "#1"));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].event, E::SeenRunning);
}

TEST(WhatBecame, AnotherBuildUnderTheSameNameStartsAnew) {
  Qualifications all;
  all.kernels["6.1"] = {S::Blessed, "", "#1 old", 0, 0, "", "a", {}};
  const auto out = what_became(all, signs("6.1", "#1 new"));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].event, E::BuildChanged);
  EXPECT_EQ(out[1].event, E::SeenRunning);
}

TEST(WhatBecame, AKernelWithoutATrialThatIsLeftIsNotLost) {
  Qualifications all;
  all.kernels["6.1"] = {S::Booted, "", "", 0, 0, "", "a", {}};
  const auto out = what_became(all, signs("6.2", ""));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[1].release, "6.1");
  EXPECT_EQ(out[1].event, E::SeenAway);
}

}  // namespace
}  // namespace gpuhealth::grub
