// SPDX-License-Identifier: Apache-2.0
// The daemon's part in choosing a kernel, with a gpuhealth-act that answers what the test says.
#include "daemon/kernel_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = KernelService::Words;

class KernelServiceTest : public testing::Test {
 protected:
  KernelServiceTest() {
    options.boot_id = "boot-2";
    options.mark = folder.string() + "/ended-in-order";
    handlers.act = [this](const Words& words, const KernelService::Ended& ended) {
      acts.push_back(words);
      const auto answer = answers.find(words.at(1));
      if (answer != answers.end()) return ended(answer->second.first, answer->second.second);
      // What it would have done to the running kernel.
      if (words.at(1) == "qualifying" || words.at(1) == "qualify")
        state = words.at(1) == "qualify" ? "booted" : "qualifying";
      if (words.at(1) == "bless") state = "blessed";
      if (words.at(1) == "reject") state = "rejected";
      ended(0, R"({"operation": "x", "default": "6.1.0-55"})");
    };
    handlers.look = [this](const Words& words, const KernelService::Ended& ended) {
      looks.push_back(words);
      ended(0, R"({"running": "6.1.0-56", "state": ")" + state + R"(", "on_trial": )" + (on_trial ? "true" : "false") +
                   R"(, "next": "6.1.0-55", "next_reason": "it is pinned", "last_known_good": "6.1.0-55",
                   "pinned": "6.1.0-55", "trial": "", "hold": true, "advisories": ["amdgpu-1"]})");
    };
    handlers.gpus = [] { return std::vector<std::string>{"0000:03:00.0"}; };
    handlers.gpu_ids = [] { return std::vector<std::string>{"uid-1"}; };
    handlers.gfx = [] { return std::vector<std::string>{"gfx1100"}; };
    handlers.run_canary = [this](const std::string& device) { runs.push_back(device); };
    handlers.baselines = [] { return std::vector<canary::stats::BaselineView>(); };
    handlers.changed = [this](const dbus::KernelState& now) { shown = now; };
    handlers.event = [this](Severity, const std::string& type, const std::string& text) {
      events.push_back(type + ": " + text);
    };
    handlers.qualified = [this] { ++qualified; };
  }
  void start() {
    service.emplace(clock, options, handlers);
    service->start();
  }
  void canary_run(canary::Status status = canary::Status::Ok) {
    canary::Measurement m;
    m.canary = "triad";
    m.device = "0000:03:00.0";
    m.status = status;
    health::CanaryOutcome outcome;
    if (status == canary::Status::Wrong) {
      health::CanaryFinding found;
      found.finding.level = canary::stats::Level::Confirmed;
      found.finding.kind = canary::stats::FindingKind::Wrong;
      found.finding.detail = "triad computed wrong";
      outcome.findings.push_back(found);
    }
    service->measured(m, outcome);
    service->run_ended(m.device);
  }
  gpuhealth::test::TempDir folder;
  ManualClock clock;
  KernelService::Options options;
  KernelService::Handlers handlers;
  std::optional<KernelService> service;
  std::string state = "booted";
  bool on_trial = true;
  std::map<std::string, std::pair<int, std::string>> answers;
  std::vector<Words> acts, looks;
  std::vector<std::string> runs, events;
  dbus::KernelState shown;
  int qualified = 0;
};

TEST_F(KernelServiceTest, TellsHowTheLastBootEndedAndForgetsIt) {
  std::ofstream(options.mark) << "boot-1\n";
  start();
  EXPECT_THAT(acts.front(), ElementsAre("kernel", "start", "--ended-in-order", "boot-1"));
  EXPECT_FALSE(std::ifstream(options.mark).good());
  service->stopped();
  std::ifstream mark(options.mark);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(mark), {}), "boot-2\n");
}

TEST_F(KernelServiceTest, ShowsWhatItKnows) {
  state = "blessed";
  start();
  EXPECT_THAT(looks.front(), ElementsAre("kernel", "show", "--gfx", "gfx1100"));
  EXPECT_EQ(shown.running, "6.1.0-56");
  EXPECT_EQ(shown.next_reason, "it is pinned");
  EXPECT_EQ(shown.pinned, "6.1.0-55");
  EXPECT_TRUE(shown.hold);
  EXPECT_THAT(shown.advisories, ElementsAre("amdgpu-1"));
  EXPECT_EQ(qualified, 1);
  EXPECT_EQ(acts.size(), 1U);  // a kernel with a verdict is not judged again
}

TEST_F(KernelServiceTest, SixGoodRunsBlessTheKernel) {
  start();
  EXPECT_THAT(acts.back(), ElementsAre("kernel", "qualifying", "6.1.0-56"));
  service->tick();
  EXPECT_THAT(runs, ElementsAre("0000:03:00.0"));
  for (int i = 0; i < 5; ++i) canary_run();
  EXPECT_EQ(acts.size(), 2U);
  canary_run();
  ASSERT_EQ(acts.size(), 3U);
  EXPECT_THAT(acts.back(), testing::IsSupersetOf({"kernel", "bless", "6.1.0-56", "--by-canaries", "--gpu", "uid-1"}));
  EXPECT_EQ(shown.state, "blessed");
  EXPECT_EQ(qualified, 1);
  canary_run();
  EXPECT_EQ(acts.size(), 3U);
}

TEST_F(KernelServiceTest, AFailedTrialStaysAndSaysSo) {
  start();
  canary_run(canary::Status::Wrong);
  EXPECT_THAT(acts.back(), testing::IsSupersetOf({"reject", "--by-canaries", "triad computed wrong"}));
  EXPECT_THAT(events,
              Contains(HasSubstr("6.1.0-56 is rejected: triad computed wrong. 6.1.0-55 starts at the next boot")));
  EXPECT_THAT(events, Contains(HasSubstr("the machine stays on 6.1.0-56")));
  EXPECT_EQ(qualified, 0);
}

TEST_F(KernelServiceTest, AFailedTrialRebootsOnceWhereThatIsWanted) {
  options.reboot = true;
  start();
  canary_run(canary::Status::Wrong);
  EXPECT_THAT(acts.back(), testing::IsSupersetOf({"device", "run", "reboot"}));
  const auto before = acts.size();
  canary_run(canary::Status::Wrong);
  clock.advance(std::chrono::hours(1));
  service->tick();
  EXPECT_EQ(acts.size(), before);
}

// The verdict is in its file minutes before the boot menu is made: what is shown meanwhile is no trial any more.
TEST_F(KernelServiceTest, AFailedTrialRebootsAlsoWhereTheMenuTakesItsTime) {
  options.reboot = true;
  handlers.act = [this, fast = handlers.act](const Words& words, const KernelService::Ended& ended) {
    if (words.at(1) == "reject") {
      state = "rejected";
      on_trial = false;
      clock.advance(2 * options.refresh);
      service->tick();
    }
    fast(words, ended);
  };
  start();
  canary_run(canary::Status::Wrong);
  EXPECT_EQ(shown.state, "rejected");
  EXPECT_THAT(acts.back(), testing::IsSupersetOf({"device", "run", "reboot"}));
}

TEST_F(KernelServiceTest, AKernelThatIsNotOnTrialDoesNotReboot) {
  options.reboot = true;
  on_trial = false;
  start();
  canary_run(canary::Status::Wrong);
  EXPECT_EQ(acts.back().at(1), "reject");
}

TEST_F(KernelServiceTest, NothingRebootsWhenTheVerdictCouldNotBeWrittenDown) {
  options.reboot = true;
  answers["reject"] = {3, R"({"error": {"code": "exhausted", "text": "no room"}})"};
  start();
  canary_run(canary::Status::Wrong);
  EXPECT_THAT(events, Contains(HasSubstr("could not be written down: no room")));
  for (const Words& words : acts) EXPECT_NE(words.at(0), "device");
}

TEST_F(KernelServiceTest, AVerdictThatCouldNotBeWrittenDownIsTriedAgainAndIsTheSame) {
  answers["reject"] = {3, R"({"error": {"code": "unavailable", "text": "grub-mkconfig did not end within 300 s"}})"};
  state = "qualifying";
  start();
  canary_run(canary::Status::Wrong);
  for (int i = 0; i < 12; ++i) canary_run();
  for (const Words& words : acts) EXPECT_NE(words.at(1), "bless");
  answers.clear();
  clock.advance(std::chrono::minutes(2));
  service->tick();
  EXPECT_EQ(acts.back().at(1), "reject");
  EXPECT_EQ(shown.state, "rejected");
}

TEST_F(KernelServiceTest, AFaultThatATrialBringsRejectsIt) {
  start();
  Condition lost;
  lost.type = ConditionType::GpuMissing;
  lost.device_label = "Radeon at 0000:03:00.0";
  service->confirmed(lost);
  EXPECT_THAT(acts.back(), testing::IsSupersetOf({"reject"}));
}

TEST_F(KernelServiceTest, WithoutCanariesThereIsNoVerdictAndThatIsSaid) {
  handlers.run_canary = nullptr;
  start();
  EXPECT_EQ(acts.size(), 1U);
  EXPECT_THAT(events, Contains(HasSubstr("6.1.0-56 gets no verdict: no canaries run by themselves (canary.interval)")));
  Result<void> answer;
  service->asked({dbus::KernelRequest::Verb::Qualify, {}, {}, false}, [&](Result<void> r) { answer = std::move(r); });
  EXPECT_FALSE(answer);
}

TEST_F(KernelServiceTest, WhatNeverCameBackIsTold) {
  answers["start"] = {0, R"({"became": [{"release": "6.1.0-57", "event": "seen-other", "reason": "it panicked"},
    {"release": "6.1.0-56", "event": "seen-running", "reason": ""}], "undone": ["000003-kernel-pin"], "warnings": []})"};
  state = "blessed";
  start();
  EXPECT_THAT(events, ElementsAre("kernel.never-came-back: 6.1.0-57: it panicked",
                                  "kernel.start: a change that was cut off is put back: 000003-kernel-pin"));
}

TEST_F(KernelServiceTest, WordsOfPeopleGoToGpuhealthAct) {
  state = "blessed";
  start();
  using V = dbus::KernelRequest::Verb;
  int done = 0;
  const auto then = [&](const Result<void>& r) { done += r ? 1 : 0; };
  service->asked({V::Pin, "6.1.0-55", "2026-12-31", false}, then);
  EXPECT_THAT(acts.back(), ElementsAre("kernel", "pin", "6.1.0-55", "--expires", "2026-12-31"));
  service->asked({V::Hold, {}, {}, true}, then);
  EXPECT_THAT(acts.back(), ElementsAre("kernel", "hold-on"));
  service->asked({V::Reject, {}, {}, false}, then);
  EXPECT_THAT(acts.back(), ElementsAre("kernel", "reject", "6.1.0-56"));
  answers["unpin"] = {3, R"({"error": {"code": "unavailable", "text": "/boot is mounted read-only"}})"};
  Result<void> refused;
  service->asked({V::Unpin, {}, {}, false}, [&](Result<void> r) { refused = std::move(r); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "/boot is mounted read-only");
  service->asked({V::Qualify, {}, {}, false}, then);
  EXPECT_EQ(shown.state, "qualifying");  // it is judged anew
  EXPECT_EQ(done, 4);
}

}  // namespace
}  // namespace gpuhealth::daemon
