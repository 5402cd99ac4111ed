// SPDX-License-Identifier: Apache-2.0
// Changes to a machine: what they leave, and that a failure at any system call leaves what was there before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::grub {
namespace {

using test::DebianMachine;
using test::kNew;
using test::kOld;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Pin, MakesTheKernelEntryZeroAndTheDefault) {
  DebianMachine machine;
  EXPECT_EQ(machine.boots(), kNew);
  const auto out = machine.perform(Operation::Pin, kOld);
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(machine.boots(), kOld);
  const Boot boot = machine.made.boot();
  EXPECT_EQ(boot.menu.front().id, "gpuhealth-pinned");
  EXPECT_EQ(boot.menu.front().steps.arguments, "root=UUID=11111111-2222-3333-4444-555555555555 ro quiet");
  EXPECT_THAT(machine.made.read("/etc/default/grub.d/zz-gpuhealth.cfg"), HasSubstr("GRUB_DEFAULT=gpuhealth-pinned"));
  EXPECT_THAT(machine.made.read("/etc/apt/apt.conf.d/52gpuhealth-kernel"), HasSubstr("-6\\.1\\.0-55-amd64$"));
  // The user's saved_entry is the user's.
  EXPECT_EQ(machine.made.read("/boot/grub/grubenv"), test::grubenv("saved_entry=users-own\n"));
}

TEST(Pin, LastsToTheEndOfItsDay) {
  const auto at = [](std::int64_t seconds) { return wall_from_microseconds(seconds * 1'000'000); };
  EXPECT_EQ(day_ended("2026-12-31", at(1798761599)), false);  // 23:59:59 UTC
  EXPECT_EQ(day_ended("2026-12-31", at(1798761600)), true);
  for (const char* text : {"", "tomorrow", "2026-12-31 12:00", "2026-11-31", "31.12.2026", "2026-1-1"})
    EXPECT_FALSE(day_ended(text, at(0))) << text;
}

TEST(Pin, ADayThatIsNoneIsRefusedAndNothingIsWritten) {
  DebianMachine machine;
  const auto before = machine.files();
  const auto out = machine.perform(Operation::Pin, kOld, "next week");
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().text, HasSubstr("is not a day: give it as 2026-12-31"));
  EXPECT_EQ(machine.files(), before);
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld, "2099-12-31"));
  EXPECT_EQ(read_choices(machine.made.tree()).expires, "2099-12-31");
}

TEST(Pin, HoldsThroughAKernelUpdateAndEveryFailureOfGrub) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  machine.install("6.1.0-57-amd64");
  ASSERT_TRUE(machine.update_grub());
  EXPECT_EQ(machine.boots(), kOld);
  for (const std::string& env : {std::string(), std::string(1024, '\0'), test::grubenv("next_entry=nonsense\n"),
                                 test::grubenv("saved_entry=gone>gone\n")}) {
    machine.made.file("/boot/grub/grubenv", env);
    EXPECT_EQ(machine.boots(), kOld) << env.substr(0, 60);
  }
}

TEST(Pin, HoldsAgainstALaterDropInAndAgainstSavedDefaults) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  machine.made.file("/etc/default/grub.d/zzz-vendor.cfg", "GRUB_DEFAULT=0\nGRUB_SAVEDEFAULT=true\n");
  ASSERT_TRUE(machine.update_grub());
  EXPECT_EQ(machine.boots(), kOld);
  machine.made.file("/etc/default/grub.d/zzz-vendor.cfg", "GRUB_DEFAULT=1\n");
  ASSERT_TRUE(machine.update_grub());
  EXPECT_EQ(machine.boots(), kOld);
}

TEST(Pin, FollowsTheDistributionsCommandLine) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  // Its body is 10_linux's of now; when that no longer knows the kernel, the stored one.
  const std::string script = machine.made.read("/etc/grub.d/06_gpuhealth");
  EXPECT_THAT(script, HasSubstr("stored_pinned"));
  EXPECT_THAT(script, HasSubstr("linux\t/boot/vmlinuz-" + kOld));
}

TEST(Pin, AMachineWhoseKernelIsRemovedFallsBackToTheDistributions) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  std::filesystem::remove(machine.made.root() + "/boot/vmlinuz-" + kOld);
  ASSERT_TRUE(machine.update_grub());
  EXPECT_EQ(machine.boots(), kNew);
}

TEST(Unpin, LeavesNothingOfOurs) {
  DebianMachine machine;
  const auto before = machine.files();
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  EXPECT_TRUE(machine.made.exists("/boot/grub/grub.cfg-prev"));
  const auto out = machine.perform(Operation::Unpin);
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(machine.files(), before);
  EXPECT_EQ(machine.boots(), kNew);
}

TEST(Trial, BootsOnceAndFallsBackByItself) {
  DebianMachine machine({kNew, kOld});
  machine.made.file("/proc/sys/kernel/osrelease", kNew + "\n");
  const auto out = machine.perform(Operation::Trial, kOld);
  ASSERT_TRUE(out) << out.error().text;
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(machine.from_then_on(), kNew);
  const Boot boot = machine.made.boot();
  EXPECT_EQ(boot.menu[0].id, "gpuhealth-pinned");
  EXPECT_EQ(boot.menu[1].id, "gpuhealth-trial");
  EXPECT_THAT(boot.menu[1].steps.arguments, HasSubstr(" panic=10 oops=panic softlockup_panic=1 hung_task_panic=1"));
  EXPECT_THAT(boot.menu[0].steps.arguments, Not(HasSubstr("panic")));
  EXPECT_THAT(machine.made.read("/boot/grub/grub.cfg"), HasSubstr("set fallback=0"));
  machine.boot_once();
  EXPECT_EQ(machine.boots(), kNew);
  EXPECT_EQ(read_qualifications(machine.made.tree()).kernels.at(kOld).state, QualificationState::TrialArmed);
}

TEST(Trial, UndoneByUnpinEvenBeforeItFired) {
  DebianMachine machine;
  auto before = machine.files();
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  ASSERT_TRUE(machine.perform(Operation::Unpin));
  auto after = machine.files();
  after.erase("/var/lib/gpuhealthd/qualification.json");
  EXPECT_EQ(after, before);
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  machine.boot_once();
  ASSERT_TRUE(machine.perform(Operation::Unpin));
  after = machine.files();
  after.erase("/var/lib/gpuhealthd/qualification.json");
  EXPECT_EQ(after, before);
}

TEST(Trial, IsRefusedWhereGrubCannotWrite) {
  DebianMachine machine;
  machine.one_shot_works = false;
  const auto before = machine.files();
  const auto out = machine.perform(Operation::Trial, kOld);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().text, HasSubstr("cannot write"));
  EXPECT_EQ(machine.files(), before);
  EXPECT_TRUE(machine.perform(Operation::Pin, kOld));  // a pin needs no grubenv
}

TEST(Trial, IsRefusedWhileAnotherOneShotIsPending) {
  DebianMachine machine;
  machine.made.file("/boot/grub/grubenv", test::grubenv("next_entry=theirs\n"));
  EXPECT_THAT(machine.perform(Operation::Trial, kOld).error().text, HasSubstr("next_entry=theirs"));
  machine.made.file("/boot/grub/grubenv", test::grubenv("prev_saved_entry=theirs\n"));
  EXPECT_THAT(machine.perform(Operation::Trial, kOld).error().text, HasSubstr("prev_saved_entry"));
  machine.made.file("/boot/grub/grubenv", std::string(1024, '\0'));
  EXPECT_THAT(machine.perform(Operation::Trial, kOld).error().text, HasSubstr("damaged"));
}

TEST(Bless, MakesAPinFollowTheKernelThatPassed) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  ASSERT_TRUE(machine.perform(Operation::Trial, kNew));
  machine.boot_once();
  EXPECT_EQ(machine.boots(), kOld);
  ASSERT_TRUE(machine.perform(Operation::Bless, kNew));
  EXPECT_EQ(machine.boots(), kNew);
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, kNew);
  EXPECT_EQ(read_qualifications(machine.made.tree()).kernels.at(kNew).state, QualificationState::Blessed);
}

TEST(Hold, KeepsANewKernelFromBecomingTheDefault) {
  DebianMachine machine({kOld});
  ASSERT_TRUE(machine.perform(Operation::HoldOn));
  machine.install(kNew);
  ASSERT_TRUE(machine.update_grub());
  EXPECT_EQ(machine.boots(), kOld);
  ASSERT_TRUE(machine.perform(Operation::HoldOff));
  EXPECT_EQ(machine.boots(), kNew);
}

// What a person had pinned before is theirs: with its last day, and after the hold again.
TEST(Hold, GivesAnEarlierPinBack) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld, "2030-12-31"));
  ASSERT_TRUE(machine.perform(Operation::Protect, kNew));
  ASSERT_TRUE(machine.perform(Operation::HoldOn));
  EXPECT_EQ(machine.boots(), kOld);
  EXPECT_EQ(read_choices(machine.made.tree()).expires, "") << "a hold has no last day";
  ASSERT_TRUE(machine.perform(Operation::HoldOn)) << "again";
  ASSERT_TRUE(machine.perform(Operation::HoldOff));
  const auto choices = read_choices(machine.made.tree());
  EXPECT_EQ(choices.pinned, kOld);
  EXPECT_EQ(choices.expires, "2030-12-31");
  EXPECT_FALSE(choices.hold);
  EXPECT_THAT(choices.protect, testing::ElementsAre(kNew));
  EXPECT_EQ(machine.boots(), kOld);
}

TEST(Hold, LeavesWhatAPersonPinsMeanwhile) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::HoldOn));
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld, "2030-12-31"));
  ASSERT_TRUE(machine.perform(Operation::HoldOff));
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, kOld);
  EXPECT_EQ(read_choices(machine.made.tree()).expires, "2030-12-31");
  EXPECT_EQ(machine.boots(), kOld);
}

TEST(Hold, MovesAnEarlierPinToTheBlessedKernel) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  ASSERT_TRUE(machine.perform(Operation::HoldOn));
  ASSERT_TRUE(machine.perform(Operation::Trial, kNew));
  ASSERT_TRUE(machine.perform(Operation::Bless, kNew));
  ASSERT_TRUE(machine.perform(Operation::HoldOff));
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, kNew);
}

// A trial that is armed takes place, and ends where the distribution's choice is.
TEST(Hold, ItsEndLeavesATrial) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::HoldOn));
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  ASSERT_TRUE(machine.perform(Operation::HoldOff));
  const auto choices = read_choices(machine.made.tree());
  EXPECT_EQ(choices.trial, kOld);
  EXPECT_TRUE(choices.temporary);
  ASSERT_TRUE(machine.perform(Operation::Bless, kOld));
  EXPECT_EQ(read_choices(machine.made.tree()).pinned, "");
}

TEST(Refusal, NamesWhatAKernelLacks) {
  DebianMachine machine;
  machine.made.file("/boot/initrd.img-" + kOld, "");
  auto out = machine.perform(Operation::Pin, kOld);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().text, HasSubstr("is empty"));
  std::filesystem::remove_all(machine.made.root() + "/lib/modules/" + kNew);
  EXPECT_THAT(machine.perform(Operation::Pin, kNew).error().text, HasSubstr("modules.dep"));
  EXPECT_THAT(machine.perform(Operation::Pin, "9.9.9").error().text, HasSubstr("installed: " + kNew));
  EXPECT_FALSE(machine.perform(Operation::Pin, "6.1.0'; rm -rf /"));
}

TEST(Refusal, AnUnsignedKernelUnderSecureBoot) {
  DebianMachine machine;
  machine.made.file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                    std::string("\x06\0\0\0\x01", 5));
  EXPECT_THAT(machine.perform(Operation::Pin, kOld).error().text, HasSubstr("not signed"));
}

TEST(Refusal, ATreeWithoutTheToolSaysWhichIsMissing) {
  DebianMachine machine;
  std::filesystem::remove(machine.made.root() + "/usr/sbin/grub-mkconfig");
  const auto before = machine.files();
  const auto out = machine.perform(Operation::Pin, kOld);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ErrorCode::Unavailable);
  EXPECT_THAT(out.error().text, HasSubstr("grub-mkconfig, which is missing"));
  EXPECT_EQ(machine.files(), before);
}

TEST(Refusal, AToolThatFailsLeavesEverything) {
  DebianMachine machine;
  const auto before = machine.files();
  machine.tool_fails = true;
  const auto out = machine.perform(Operation::Pin, kOld);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().text, HasSubstr("cannot find a device"));
  EXPECT_THAT(out.error().text, HasSubstr("Everything is as it was before."));
  EXPECT_EQ(machine.files(), before);
}

TEST(Refusal, AMenuThatLacksAKernelIsNotPutInPlace) {
  DebianMachine machine;
  const auto before = machine.files();
  Surroundings surroundings = machine.surroundings();
  surroundings.run = [&](const Tree&, const std::vector<std::string>& command) -> Result<void> {
    machine.made.file(command.back(), test::debian_config({kOld}));
    return {};
  };
  const auto out = perform(machine.made.tree(), {Operation::Pin, kOld, {}}, surroundings);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().text, HasSubstr("it lacks " + kNew));
  EXPECT_EQ(machine.files(), before);
}

struct Step {
  std::string name;
  Operation operation;
  std::string release;
  std::vector<std::pair<Operation, std::string>> before;
};

struct Failure {
  std::string name;
  int error = EIO;
  bool dead = false;  // the machine stops at that call and comes up again; else the program goes on
};

class EachSystemCall : public testing::TestWithParam<std::tuple<Step, Failure>> {};

TEST_P(EachSystemCall, MayFail) {
  const Step& step = std::get<0>(GetParam());
  const auto& [name, error, dead] = std::get<1>(GetParam());
  int points = 0;
  for (int call = 1;; ++call) {
    DebianMachine machine;
    for (const auto& [operation, release] : step.before) ASSERT_TRUE(machine.perform(operation, release));
    const auto before = machine.files();
    const std::string boots = machine.boots();
    machine.system.calls = 0;
    machine.system.fail_at = call;
    machine.system.error = error;
    machine.system.dead = dead;
    const auto out = machine.perform(step.operation, step.release);
    const bool reached = machine.system.calls >= call;
    machine.system.fail_at = 0;
    // Whatever GRUB would do now, it is the old or the new choice.
    const std::string now = machine.boots();
    EXPECT_TRUE(now == kOld || now == kNew) << "call " << call << ": " << now;
    const auto recovered = recover(machine.made.tree(), machine.surroundings());
    ASSERT_TRUE(recovered) << recovered.error().text;
    if (!reached) {
      EXPECT_TRUE(out) << out.error().text;
      break;
    }
    ++points;
    if (out) continue;  // a call whose failure does no harm
    const auto entries = read_ledger(machine.made.tree());
    // The power went after the last write: the change is whole, and the ledger says so.
    if (dead && !entries.empty() && entries.back().state == "done" && entries.size() > step.before.size()) continue;
    EXPECT_EQ(machine.files(), before) << "call " << call << ": " << out.error().text;
    EXPECT_EQ(machine.boots(), boots);
    for (const LedgerEntry& entry : read_ledger(machine.made.tree()))
      EXPECT_THAT(entry.state, testing::AnyOf("done", "undone")) << "call " << call;
  }
  EXPECT_GT(points, 20);
}

INSTANTIATE_TEST_SUITE_P(
    Changes, EachSystemCall,
    testing::Combine(
        testing::Values(Step{"Pin", Operation::Pin, kOld, {}},
                        Step{"Unpin", Operation::Unpin, "", {{Operation::Pin, kOld}}},
                        Step{"Trial", Operation::Trial, kOld, {}},
                        Step{"Bless", Operation::Bless, kNew, {{Operation::Pin, kOld}, {Operation::Trial, kNew}}},
                        Step{"HoldOn", Operation::HoldOn, "", {}},
                        Step{"HoldOff", Operation::HoldOff, "", {{Operation::Pin, kOld}, {Operation::HoldOn, ""}}},
                        Step{"Protect", Operation::Protect, kOld, {}},
                        Step{"Reject", Operation::Reject, kNew, {{Operation::Pin, kOld}, {Operation::Trial, kNew}}}),
        testing::Values(Failure{"NoSpace", ENOSPC}, Failure{"ReadOnly", EROFS}, Failure{"IoError", EIO},
                        Failure{"PowerCut", EIO, true})),
    [](const auto& tested) { return std::get<0>(tested.param).name + std::get<1>(tested.param).name; });

TEST(Ledger, TellsWhatWasDoneAndUndone) {
  DebianMachine machine;
  ASSERT_TRUE(machine.perform(Operation::Pin, kOld));
  machine.tool_fails = true;
  ASSERT_FALSE(machine.perform(Operation::Unpin));
  const auto entries = read_ledger(machine.made.tree());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].id, "000001-kernel-pin");
  EXPECT_EQ(entries[0].state, "done");
  EXPECT_EQ(entries[1].state, "undone");
  EXPECT_THAT(entries[1].note, HasSubstr("cannot find a device"));
}

TEST(Grubenv, KeepsItsInodeWhenItIsWritten) {
  DebianMachine machine;
  const auto inode = [&] { return machine.made.tree().stat("/boot/grub/grubenv")->st_ino; };
  const auto before = inode();
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  EXPECT_EQ(inode(), before);
  EXPECT_EQ(machine.made.read("/boot/grub/grubenv"),
            test::grubenv("saved_entry=users-own\ngpuhealth_trial=armed\nnext_entry=gpuhealth-trial\n"));
}

TEST(Grubenv, IsWrittenThroughItsLink) {
  DebianMachine machine;
  std::filesystem::remove(machine.made.root() + "/boot/grub/grubenv");
  machine.made.file("/boot/efi/EFI/debian/grubenv", test::grubenv(""));
  machine.made.link("/boot/grub/grubenv", "../efi/EFI/debian/grubenv");
  ASSERT_TRUE(machine.perform(Operation::Trial, kOld));
  EXPECT_TRUE(std::filesystem::is_symlink(machine.made.root() + "/boot/grub/grubenv"));
  EXPECT_EQ(machine.made.read("/boot/efi/EFI/debian/grubenv"),
            test::grubenv("gpuhealth_trial=armed\nnext_entry=gpuhealth-trial\n"));
}

}  // namespace
}  // namespace gpuhealth::grub
