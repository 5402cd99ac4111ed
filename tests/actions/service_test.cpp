// SPDX-License-Identifier: Apache-2.0
// The queue before gpuhealth-act. The program is the real code on a synthetic machine, or a stand-in that never
// answers.
#include "actions/service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/request.hpp"
#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Service : public testing::Test {
 protected:
  Service() : clock({wall_from_microseconds(1'796'000'000'000'000), {}}), service(clock, handlers()) {}

  ActionService::Handlers handlers() {
    ActionService::Handlers out;
    out.act = [this](const auto& words, const std::string& input, Duration, const ActionService::Ended& ended) {
      started.push_back(words.at(1));
      if (hold) {
        held.push_back({words, input, ended});
      } else {
        answer(words, input, ended);
      }
    };
    out.run_canary = [this](const ActionRequest& request) { canaries.push_back(request.device); };
    out.changed = [this](const ActionRecord& record) { states.push_back(record.state); };
    out.log = [this](Severity, const std::string& text) { lines.push_back(text); };
    return out;
  }
  struct Held {
    std::vector<std::string> words;
    std::string input;
    ActionService::Ended ended;
  };
  void answer(const std::vector<std::string>& words, const std::string& input, const ActionService::Ended& ended) {
    m.machine().outside.now = clock.now().wall;
    Result<Outcome> done = fail(ErrorCode::Internal, "unknown");
    if (words[1] == "run") done = carry_out(m.machine(), order_from(input).value());
    if (words[1] == "confirm") done = confirm(m.machine(), words[2]);
    if (words[1] == "revert") done = revert(m.machine(), words[2], false);
    if (words[1] == "verified") done = note_verified(m.machine(), words[2]);
    if (words[1] == "recover") done = recover(m.machine());
    if (words[1] == "again") done = apply_again(m.machine(), words[3]);
    ended(done ? 0 : 7, (done ? outcome_json(*done) : error_json(done.error())).dump());
  }
  [[nodiscard]] Order cap(const std::string& watts) const {
    Order out = m.order(ActionKind::PowerCap, {{"watts", watts}});
    out.request.rule = "cool-it";
    out.request.condition = "thermal-throttling-x-1";
    return out;
  }

  TestMachine m;
  ManualClock clock;
  bool hold = false;
  std::vector<Held> held;
  std::vector<std::string> started, states, lines, canaries;
  ActionService service;
};

TEST_F(Service, FollowsAnActionToTheEndOfItsCondition) {
  const WallTime fault = clock.now().wall - std::chrono::seconds(40);
  service.submit(cap("280"), fault);
  EXPECT_THAT(states, ElementsAre("queued", "running", "applied"));
  EXPECT_THAT(canaries, ElementsAre(m.pci()));
  clock.advance(std::chrono::seconds(30));
  service.canary_passed(m.pci());
  service.condition_cleared("thermal-throttling-x-1");
  EXPECT_EQ(service.records().back().state, "confirmed");
  const LedgerEntry entry = m.last();
  EXPECT_EQ(entry.times.at("fault"), "2026-11-30T00:52:40Z");
  EXPECT_EQ(entry.times.at("detected"), "2026-11-30T00:53:20Z");
  EXPECT_EQ(entry.times.at("applied"), "2026-11-30T00:53:20Z");
  EXPECT_EQ(entry.times.at("verified"), "2026-11-30T00:53:50Z");
  EXPECT_EQ(entry.times.at("confirmed"), "2026-11-30T00:53:50Z");
  clock.advance(std::chrono::hours(1));
  service.tick();
  EXPECT_EQ(m.read(m.cap()), "280000000");
}

TEST_F(Service, TakesBackWhatDidNotHelpInItsTime) {
  service.submit(cap("280"), clock.now().wall);
  clock.advance(std::chrono::minutes(14));
  service.tick();
  EXPECT_EQ(m.read(m.cap()), "280000000");
  clock.advance(std::chrono::minutes(1));
  service.tick();
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_EQ(service.records().back().state, "reverted");
}

TEST_F(Service, TakesBackWhatIsNoLongerWanted) {
  service.submit(cap("290"), clock.now().wall);
  service.submit(cap("280"), clock.now().wall);
  service.no_longer_wanted(cap("280").request);
  EXPECT_EQ(m.read(m.cap()), "303000000");
  for (const LedgerEntry& entry : m.ledger()) EXPECT_EQ(entry.state, "reverted");
}

TEST_F(Service, OneAtATime) {
  hold = true;
  service.submit(cap("290"), clock.now().wall);
  service.submit(cap("280"), clock.now().wall);
  EXPECT_THAT(started, ElementsAre("run"));
  EXPECT_EQ(service.waiting(), 1U);
  const Held first = held.front();
  answer(first.words, first.input, first.ended);
  EXPECT_THAT(started, ElementsAre("run", "run"));
}

TEST_F(Service, OneThatWasKilledIsResolvedAtOnceAndTheNextGoesOn) {
  hold = true;
  service.submit(cap("290"), clock.now().wall);
  service.submit(cap("280"), clock.now().wall);
  hold = false;
  held.front().ended(-1, "");
  EXPECT_THAT(started, ElementsAre("run", "recover", "run"));
  EXPECT_EQ(service.records().front().state, "refused");
  EXPECT_EQ(service.records().back().state, "applied");
}

TEST_F(Service, ARefusalIsSaid) {
  m.write("/etc/gpuhealthd/observe", "");
  service.submit(cap("280"), clock.now().wall);
  EXPECT_EQ(service.records().back().state, "refused");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("/etc/gpuhealthd/observe is there")));
  EXPECT_THAT(canaries, IsEmpty());
}

TEST_F(Service, AResumedDeviceGetsBackWhatItForgot) {
  service.submit(cap("280"), clock.now().wall);
  m.write(m.cap(), "303000000\n");
  service.device_came_back(m.pci());
  EXPECT_EQ(m.read(m.cap()), "280000000");
  started.clear();
  service.device_came_back("uid-of-another");
  EXPECT_THAT(started, IsEmpty());
}

TEST_F(Service, ASleepingGpuIsNotWokenToTakeSomethingBackAndIsTriedAgain) {
  service.submit(cap("280"), clock.now().wall);
  m.write(m.device() + "/power/runtime_status", "suspended\n");
  clock.advance(std::chrono::minutes(15));
  m.system.writes.clear();
  service.tick();
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_EQ(m.last().state, "applied");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("sleeps; 303 W is brought back when it is awake")));
  m.write(m.device() + "/power/runtime_status", "active\n");
  clock.advance(std::chrono::minutes(1));
  service.tick();
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST_F(Service, AfterARestartItKnowsWhatIsInPlaceAndFollowsItToItsEnd) {
  service.submit(cap("280"), clock.now().wall);
  auto know = handlers();
  know.ledger = [this] { return m.ledger(); };
  ActionService next(clock, know);
  next.start();
  ASSERT_EQ(next.records().size(), 1U);
  EXPECT_EQ(next.records().back().state, "applied");
  EXPECT_EQ(next.records().back().before, "303 W");
  EXPECT_EQ(next.records().back().detected, clock.now().wall);
  next.condition_cleared("thermal-throttling-x-1");
  EXPECT_EQ(m.last().state, "confirmed");
  EXPECT_EQ(next.records().back().state, "confirmed");
}

TEST_F(Service, AfterARestartWhatNobodyFindsGoodIsTakenBackInItsTime) {
  service.submit(cap("280"), clock.now().wall);
  auto know = handlers();
  know.ledger = [this] { return m.ledger(); };
  ActionService next(clock, know);
  next.start();
  EXPECT_EQ(m.read(m.cap()), "280000000");
  clock.advance(std::chrono::minutes(15));
  next.tick();
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_EQ(next.records().back().state, "reverted");
}

TEST_F(Service, WhatIsNoLongerWantedBeforeItIsDoneIsTakenBackAfterIt) {
  hold = true;
  service.submit(cap("290"), clock.now().wall);
  service.submit(cap("280"), clock.now().wall);
  service.no_longer_wanted(cap("280").request);
  hold = false;
  const Held first = held.front();
  answer(first.words, first.input, first.ended);
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_THAT(started, ElementsAre("run", "revert"));
  EXPECT_EQ(service.records().back().state, "withdrawn");
}

TEST_F(Service, ARuleThatNoConditionAskedIsGoodWhenItsEpisodeIsOver) {
  Order order = cap("280");
  order.request.condition.clear();
  service.submit(order, clock.now().wall);
  service.episodes_ended([](const ActionRequest&) { return false; });
  EXPECT_EQ(service.records().back().state, "applied");
  service.episodes_ended([](const ActionRequest& request) { return request.rule == "cool-it"; });
  EXPECT_EQ(service.records().back().state, "confirmed");
}

TEST_F(Service, APersonLearnsWhatCameOfIt) {
  service.submit(cap("280"), clock.now().wall);
  std::vector<std::string> answers;
  const auto then = [&](const Result<void>& r) { answers.push_back(r ? "done" : r.error().text); };
  service.confirm(m.last().id, then);
  service.revert("000099-power-cap", then);
  service.revert(m.last().id, then);
  EXPECT_THAT(answers, ElementsAre("done", HasSubstr("there is no action"), "done"));
  EXPECT_EQ(m.read(m.cap()), "303000000");
}

TEST_F(Service, TheQueueIsBounded) {
  hold = true;
  for (int i = 0; i < 70; ++i) service.submit(cap("280"), clock.now().wall);
  EXPECT_EQ(service.waiting(), 64U);
  EXPECT_EQ(service.records().back().state, "refused");
}

}  // namespace
}  // namespace gpuhealth::actions
