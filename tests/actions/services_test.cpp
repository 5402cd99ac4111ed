// SPDX-License-Identifier: Apache-2.0
// What goes out to services, programs and people. Stand-in programs lie in the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "actions/text.hpp"
#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

namespace fs = std::filesystem;
using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Remembers the node's state in a file, as slurmctld does; writes down how it was called.
void with_slurm(TestMachine& m) {
  m.write("/slurm/state", "IDLE\n");
  m.write("/slurm/reason", "none\n");
  const std::string at = m.root().string() + "/slurm/";
  m.program("/usr/bin/scontrol",
            "#!/bin/sh\nfor w in \"$@\"; do printf '%s|' \"$w\" >> " + at + "calls; done; echo >> " + at +
                "calls\nif [ \"$1\" = --oneliner ]; then echo \"NodeName=$4 Arch=x86_64 State=$(cat " + at +
                "state) Reason=$(cat " + at + "reason) [root@2026-11-30T12:00:00] Comment=x\"; exit 0; fi\n" +
                "case \"$3\" in State=DRAIN) echo IDLE+DRAIN > " + at + "state; echo \"${4#Reason=}\" > " + at +
                "reason;; State=RESUME) echo IDLE > " + at + "state; echo none > " + at + "reason;; esac\n");
}

TEST(Drain, MarksTheMachineAndTakesTheMarkAway) {
  TestMachine m;
  m.write(std::string(kQualifiedFile), "since 12:00\n");
  const auto before = m.files();
  const auto done = m.run_by_rule(ActionKind::Drain);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(m.read(std::string(kDrainFile)), "junction at 110 C");
  EXPECT_FALSE(m.exists(std::string(kQualifiedFile)));
  EXPECT_EQ(m.run_by_rule(ActionKind::Drain)->state, "nothing-to-do");
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_EQ(m.files(), before);
}

TEST(Drain, ABootTakesItAway) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::Drain, {{"reason", "bad memory"}}));
  m.reboot("boot-2");
  m.later(std::chrono::hours(1));
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "reverted");
  EXPECT_FALSE(m.exists(std::string(kDrainFile)));
}

TEST(Drain, AMarkOfAnOperatorsOwnIsLeftThere) {
  TestMachine m;
  const auto done = m.run(ActionKind::Drain, {{"reason", "bad memory"}});
  ASSERT_TRUE(done);
  m.write(std::string(kDrainFile), "I am working on this machine\n");
  for (const bool by_person : {false, true}) {
    std::ignore = revert(m.machine(), done->ledger, by_person);
    EXPECT_EQ(m.read(std::string(kDrainFile)), "I am working on this machine");
  }
  EXPECT_EQ(m.last().state, "overtaken");
}

TEST(Drain, OneThatWasConfirmedIsOverAfterABoot) {
  TestMachine m;
  const auto done = m.run(ActionKind::Drain, {{"reason", "bad memory"}});
  ASSERT_TRUE(done);
  ASSERT_TRUE(confirm(m.machine(), done->ledger));
  m.reboot("boot-2");
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "over");
  EXPECT_FALSE(in_force(m.last()));
}

TEST(SlurmDrain, DrainsWithAReasonAndResumes) {
  TestMachine m;
  with_slurm(m);
  const auto done = m.run_by_rule(ActionKind::SlurmDrain, {{"reason", "{condition}: {reason}"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(m.read("/slurm/state"), "IDLE+DRAIN");
  EXPECT_EQ(m.read("/slurm/reason"),
            "gpuhealth: thermal-throttling-uid-5ee0000000000001-1764515000: junction at 110 C");
  EXPECT_THAT(m.read("/slurm/calls"), HasSubstr("update|NodeName=node7|State=DRAIN|Reason=gpuhealth: thermal"));
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_EQ(m.read("/slurm/state"), "IDLE");
}

TEST(SlurmDrain, ANodeThatAnAdminDrainedIsNeitherDrainedNorResumed) {
  TestMachine m;
  with_slurm(m);
  m.write("/slurm/state", "DOWN+DRAIN\n");
  m.write("/slurm/reason", "new RAM\n");
  EXPECT_EQ(m.run_by_rule(ActionKind::SlurmDrain)->state, "nothing-to-do");
  m.write("/slurm/state", "IDLE\n");
  const auto done = m.run_by_rule(ActionKind::SlurmDrain);
  ASSERT_TRUE(done);
  m.write("/slurm/reason", "taken over by an admin\n");
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_EQ(m.read("/slurm/state"), "IDLE+DRAIN");
  EXPECT_EQ(m.last().state, "overtaken");
}

TEST(SlurmDrain, AMachineWithoutSlurmSaysSo) {
  TestMachine m;
  // Never the scontrol of the machine that the tests run on.
  EXPECT_THAT(m.run(ActionKind::SlurmDrain).error().text, HasSubstr("there is no scontrol"));
}

TEST(RunHook, GetsTheEventOnItsInputAndInItsEnvironmentAndNoShell) {
  TestMachine m;
  m.program("/etc/gpuhealthd/hooks.d/tell",
            "#!/bin/sh\ncat > " + m.root().string() + "/seen\nenv > " + m.root().string() + "/env\necho all well\n");
  Order order = m.order(ActionKind::RunHook, {{"program", "tell"}});
  order.request.rule = "cool-it";
  order.request.condition = "overheating-x-1";
  order.request.reason = "$(touch /nowhere) `id` \n next";
  order.event = R"({"severity": "critical"})";
  const auto done = m.run(order);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(done->text, HasSubstr("all well"));
  const auto seen = nlohmann::json::parse(m.read("/seen"));
  EXPECT_EQ(seen["rule"], "cool-it");
  EXPECT_EQ(seen["event"]["severity"], "critical");
  EXPECT_EQ(seen["pci"], m.pci());
  EXPECT_THAT(m.read("/env"), HasSubstr("GPUHEALTH_REASON=$(touch /nowhere) `id`   next\n"));
  EXPECT_EQ(m.last().state, "done");
}

TEST(RunHook, IsKilledAtItsDeadlineWithAllThatItStarted) {
  TestMachine m;
  m.program("/etc/gpuhealthd/hooks.d/slow", "#!/bin/sh\necho begun\nsleep 600 &\nsleep 600\n");
  const auto late = m.run(ActionKind::RunHook, {{"program", "slow"}, {"deadline", "200ms"}});
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().text, HasSubstr("was killed. It said: begun"));
  EXPECT_EQ(m.last().state, "failed");
}

TEST(RunHook, WhatItSaysIsBounded) {
  TestMachine m;
  m.program("/etc/gpuhealthd/hooks.d/loud", "#!/bin/sh\nhead -c 5000000 /dev/zero | tr '\\0' x\n");
  ProgramRun run;
  run.words = {m.root().string() + "/etc/gpuhealthd/hooks.d/loud"};
  run.most = 1000;
  const auto end = run_program(run);
  ASSERT_TRUE(end) << end.error().text;
  EXPECT_EQ(end->said, std::string(1000, 'x'));
  EXPECT_EQ(end->code, 0);
}

TEST(RunHook, OnlyWhatNobodyElseCouldHavePutThere) {
  TestMachine m;
  m.program("/etc/gpuhealthd/hooks.d/open", "#!/bin/sh\n");
  fs::permissions(m.root() / "etc/gpuhealthd/hooks.d/open", fs::perms(0777));
  EXPECT_THAT(m.run(ActionKind::RunHook, {{"program", "open"}}).error().text, HasSubstr("can be written by others"));
  m.write("/etc/gpuhealthd/hooks.d/text", "#!/bin/sh\n");
  EXPECT_THAT(m.run(ActionKind::RunHook, {{"program", "text"}}).error().text, HasSubstr("not executable"));
  EXPECT_FALSE(m.run(ActionKind::RunHook, {{"program", ".hidden"}}));
  EXPECT_FALSE(m.run(ActionKind::RunHook, {{"program", "../../../bin/sh"}}));
  EXPECT_EQ(m.run(ActionKind::RunHook, {{"program", "absent"}}).error().code, ErrorCode::NotFound);
}

TEST(RunHook, AFailureIsReportedWithWhatItSaid) {
  TestMachine m;
  m.program("/etc/gpuhealthd/hooks.d/bad", "#!/bin/sh\necho no such host >&2\nexit 3\n");
  EXPECT_THAT(m.run(ActionKind::RunHook, {{"program", "bad"}}).error().text,
              HasSubstr("failed with exit code 3. It said: no such host"));
}

TEST(Notify, TellsTheJournalWithItsUrgency) {
  TestMachine m;
  const auto done = m.run_by_rule(ActionKind::Notify, {{"urgency", "critical"}, {"text", "{host}: {reason}"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.told, ElementsAre("2 node7: junction at 110 C"));
  EXPECT_THAT(m.ledger(), IsEmpty());
  EXPECT_EQ(m.system.calls, 0);
}

TEST(Notify, MailsThroughSendmailAndNothingBecomesAnOptionOrAHeader) {
  TestMachine m;
  m.program("/usr/sbin/sendmail",
            "#!/bin/sh\necho \"$@\" > " + m.root().string() + "/args\ncat > " + m.root().string() + "/mail\n");
  Order order =
      m.order(ActionKind::Notify, {{"via", "mail"}, {"to", "ops@example.org"}, {"text", "hot\nBcc: everybody"}});
  const auto done = m.run(order);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(m.read("/args"), "-t -i");
  EXPECT_THAT(m.read("/mail"), HasSubstr("To: ops@example.org\nSubject: [gpuhealth] node7: hot Bcc: everybody\n"));
  for (const char* bad : {"-odq", "a@b\nBcc: c", "a@b, c@d"}) {
    order.request.params["to"] = bad;
    EXPECT_FALSE(m.run(order)) << bad;
  }
}

TEST(Notify, CallsAWebhookThroughCurlWithItsUrlOutOfSight) {
  TestMachine m;
  m.program("/usr/bin/curl",
            "#!/bin/sh\necho \"$@\" > " + m.root().string() + "/args\ncat > " + m.root().string() + "/config\n");
  const auto done = m.run(ActionKind::Notify,
                          {{"via", "webhook"}, {"to", "https://example.org/secret\"x"}, {"text", "it is \"hot\""}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(m.read("/args"), "--disable --config -");
  EXPECT_THAT(m.read("/config"), HasSubstr("url = \"https://example.org/secret\\\"x\"\n"));
  EXPECT_THAT(m.read("/config"), HasSubstr(R"(data-binary = "{\"text\":\"it is \\\"hot\\\"\",)"));
  EXPECT_FALSE(m.run(ActionKind::Notify, {{"via", "webhook"}, {"to", "http://example.org/"}}));
  EXPECT_FALSE(m.run(ActionKind::Notify, {{"via", "webhook"}, {"to", "https://example.org/ -o /etc/passwd"}}));
}

TEST(Notify, AWayThatFailsDoesNotKeepTheOthersFromHearing) {
  TestMachine m;
  const auto done = m.run(ActionKind::Notify, {{"via", "mail,journal,desktop"}, {"text", "hot"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(done->warnings, testing::Contains(HasSubstr("mail: there is no sendmail")));
  EXPECT_THAT(m.told, ElementsAre("4 hot"));
  EXPECT_FALSE(m.run(ActionKind::Notify, {{"via", "pigeon"}}));
}

TEST(CollectEvidence, SavesTheDumpBeforeTheKernelThrowsItAway) {
  TestMachine m;
  m.write("/sys/class/devcoredump/devcd5/data", std::string(50'000, 'd'));
  fs::create_directory_symlink("../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/" + m.pci(),
                               m.root() / "sys/class/devcoredump/devcd5/failing_device");
  m.write("/sys/class/devcoredump/devcd6/data", "of another card");
  m.write("/var/lib/gpuhealthd/canary/results.jsonl", "{\"n\":1}\n{\"n\":2}\n");
  m.program("/usr/bin/journalctl", "#!/bin/sh\necho \"line of $*\"\n");
  Order order = m.order(ActionKind::CollectEvidence);
  order.event = R"({"type": "gpu-hang"})";
  const auto done = m.run(order);
  ASSERT_TRUE(done) << done.error().text;
  const std::string folder = "/var/lib/gpuhealthd/evidence/20261130T005320Z-0000-03-00.0";
  EXPECT_EQ(m.read(folder + "/devcd5.dump").size(), 50'000U);
  EXPECT_FALSE(m.exists(folder + "/devcd6.dump"));
  EXPECT_THAT(m.read(folder + "/event.json"), HasSubstr("gpu-hang"));
  EXPECT_EQ(m.read(folder + "/canary-results.jsonl"), "{\"n\":1}\n{\"n\":2}");
  EXPECT_THAT(m.read(folder + "/kernel.log"), HasSubstr("--dmesg"));
  EXPECT_EQ(m.read(folder + "/device-vbios_version"), "113-D70401XT-N11");
  EXPECT_EQ(nlohmann::json::parse(m.read(folder + "/MANIFEST.json"))["files"][0]["file"], "devcd5.dump");
  // The dump is the kernel's: a write would throw it away.
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(CollectEvidence, NeverGrowsBeyondItsLimit) {
  TestMachine m;
  m.write("/sys/class/devcoredump/devcd1/data", std::string(3'000'000, 'd'));
  fs::create_directory_symlink("../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/" + m.pci(),
                               m.root() / "sys/class/devcoredump/devcd1/failing_device");
  const auto done = m.run(ActionKind::CollectEvidence, {{"limit", "64KiB"}});
  ASSERT_TRUE(done) << done.error().text;
  std::uintmax_t all = 0;
  for (const std::string& file : done->files) all += fs::file_size(m.root().string() + file);
  EXPECT_LE(all, 65'536U);
  EXPECT_GT(all, 20'000U);
}

TEST(CollectEvidence, OfASleepingGpuOnlyWhatDoesNotWakeIt) {
  TestMachine m;
  m.write(m.device() + "/power/runtime_status", "suspended\n");
  const auto done = m.run(ActionKind::CollectEvidence);
  ASSERT_TRUE(done) << done.error().text;
  for (const std::string& file : done->files) EXPECT_THAT(file, testing::Not(HasSubstr("gpu_metrics")));
}

TEST(Reboot, AsksLogindWithNoticeAndMessage) {
  TestMachine m;
  const auto done = m.run_by_rule(ActionKind::Reboot, {{"notice", "2m"}});
  ASSERT_TRUE(done) << done.error().text;
  ASSERT_EQ(m.reboots.size(), 1U);
  EXPECT_EQ(m.reboots[0].notice, std::chrono::seconds(120));
  EXPECT_EQ(m.reboots[0].message, "gpuhealthd reboots this machine: junction at 110 C");
}

TEST(Reboot, NeverAgainstAnInhibitorNorOutsideItsWindow) {
  TestMachine m;
  m.inhibitors = {"apt (pid 7): updates are being installed"};
  EXPECT_THAT(m.run_by_rule(ActionKind::Reboot).error().text, HasSubstr("kept from going down by apt (pid 7)"));
  m.inhibitors.clear();
  // A Saturday.
  m.machine().outside.now = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 5) + std::chrono::hours(12));
  EXPECT_THAT(m.run_by_rule(ActionKind::Reboot, {{"window", "02:00-05:00"}}).error().text, HasSubstr("not the time"));
  m.machine().outside.now += std::chrono::hours(15);
  EXPECT_THAT(m.run_by_rule(ActionKind::Reboot, {{"window", "Mon-Fri 02:00-05:00"}}).error().text,
              HasSubstr("not the time"));
  EXPECT_TRUE(m.run_by_rule(ActionKind::Reboot, {{"window", "02:00-05:00"}}));
  EXPECT_EQ(m.reboots.size(), 1U);
}

TEST(Reboot, NeverASecondTimeForTheSameVerdict) {
  TestMachine m;
  ASSERT_TRUE(m.run_by_rule(ActionKind::Reboot));
  m.reboot("boot-2");
  ASSERT_TRUE(recover(m.machine()));
  m.later(std::chrono::hours(5));
  // After the boot the condition has another id: its time is another one.
  Order order = m.order(ActionKind::Reboot);
  order.request.rule = "cool-it";
  order.request.condition = "thermal-throttling-uid-5ee0000000000001-1764600000";
  const auto refused = m.run(order);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("was rebooted for this already"));
  order.request.condition = "gpu-hang-uid-5ee0000000000001-1764600000";
  EXPECT_TRUE(m.run(order));
}

}  // namespace
}  // namespace gpuhealth::actions
