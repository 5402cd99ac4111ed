// SPDX-License-Identifier: Apache-2.0
#include "policy/evaluate.hpp"

#include "bench.hpp"

namespace gpuhealth::policy {
namespace {

using namespace test;
using enum ConditionType;

TEST(Evaluate, ARuleDecidesOnceForAnEpisode) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [notify]}\n");
  EXPECT_EQ(m.says(), Says{});
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.wait(1h);
  EXPECT_EQ(m.says(), Says{});
}

TEST(Evaluate, ARequestSaysWhoAsksForWhatAndWhy) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, do: [{power-cap: {watts: 250 W}}, {notify: {text: \"{device}: "
      "{detail}\"}}, drain]}\n");
  m.confirm(Overheating);
  m.snapshot.devices[0].conditions[0].detail = "112 C of 110 C";
  m.snapshot.devices[0].label = "Radeon";
  const auto d = m.look();
  ASSERT_EQ(d.size(), 1U);
  ASSERT_EQ(d[0].actions.size(), 3U);
  EXPECT_EQ(d[0].actions[0].params.at("watts"), "250");
  EXPECT_EQ(d[0].actions[0].device, "gpu0");
  EXPECT_EQ(d[0].actions[0].condition, "overheating-gpu0-" + std::to_string(to_microseconds(m.now.wall) / 1'000'000));
  EXPECT_EQ(d[0].actions[1].params.at("text"), "Radeon: 112 C of 110 C");
  EXPECT_EQ(d[0].actions[2].device, "") << "a drain concerns the machine";
  EXPECT_EQ(d[0].reason, "overheating: 112 C of 110 C");
}

TEST(Evaluate, ForAsksThatItHoldsWithoutABreak) {
  Machine m("  - {name: r, when: {condition: overheating}, for: 5m, do: [notify]}\n");
  m.confirm(Overheating);
  (void)m.look();
  m.wait(4min);
  EXPECT_EQ(m.says(), Says{});
  m.clear();
  (void)m.look();
  m.confirm(Overheating);
  (void)m.look();
  m.wait(4min);
  EXPECT_EQ(m.says(), Says{}) << "the break began the time anew";
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, WhatIsNotKnownNeitherHoldsNorEnds) {
  Machine m(
      "  - {name: r, when: {reading: {name: temperature.junction, above: 95 C}}, for: 1m, do: [notify]}\n"
      "  - {name: n, when: {not: {reading: {name: temperature.junction, above: 95 C}}}, do: [notify]}\n");
  EXPECT_EQ(m.says(), Says{}) << "a reading that is not there is not below its bound either";
  m.read(ReadingId::TemperatureJunction, 100);
  (void)m.look();
  m.wait(30s);
  m.snapshot.devices[0].readings[0].status = ReadingStatus::Unreadable;
  EXPECT_EQ(m.says(), Says{});
  m.wait(10min);
  m.read(ReadingId::TemperatureJunction, 100);
  EXPECT_EQ(m.says(), Says{}) << "ten minutes without a reading are not ten hot minutes";
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, HysteresisHoldsUntilTheValueToClear) {
  Machine m(
      "  - {name: r, when: {reading: {name: temperature.junction, above: 95 C, clear: 85 C}}, cooldown: 0s, do: "
      "[notify]}\n");
  const std::vector<std::pair<double, Says>> steps = {
      {90, {}}, {96, {"act r gpu0"}}, {94, {}}, {96, {}}, {86, {}}, {85, {}}, {94, {}}, {96, {"act r gpu0"}}};
  for (const auto& [value, says] : steps) {
    m.read(ReadingId::TemperatureJunction, value);
    m.wait(1s);
    EXPECT_EQ(m.says(), says) << value;
  }
}

TEST(Evaluate, ClearForKeepsAFlappingConditionOneEpisode) {
  Machine m("  - {name: r, when: {condition: overheating}, clear_for: 10m, cooldown: 0s, do: [notify]}\n");
  int acts = 0;
  for (int i = 0; i < 40; ++i) {
    i % 2 == 0 ? m.confirm(Overheating) : m.clear();
    acts += static_cast<int>(m.look().size());
    m.wait(1min);
  }
  EXPECT_EQ(acts, 1);
  m.clear();
  for (int i = 0; i < 12; ++i) (void)m.look(), m.wait(1min);
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, WithinTheCooldownItWaitsAndThenMakesUpForIt) {
  Machine m("  - {name: r, when: {condition: overheating}, cooldown: 30m, do: [notify]}\n");
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.clear();
  (void)m.look();
  m.wait(10min);
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"blocked:cooldown r gpu0"});
  m.wait(10min);
  EXPECT_EQ(m.says(), Says{}) << "a reason is said once";
  m.wait(10min);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, TheCooldownIsOfOneGpu) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [notify]}\n", 2);
  m.confirm(Overheating, 0);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.confirm(Overheating, 1);
  EXPECT_EQ(m.says(), Says{"act r gpu1"});
}

TEST(Evaluate, ABudgetIsOfTheMachine) {
  Machine m("  - {name: r, when: {condition: overheating}, budget: {count: 2, within: 1h}, do: [notify]}\n", 3);
  for (std::size_t i = 0; i < 3; ++i) m.confirm(Overheating, i);
  EXPECT_EQ(m.says(), (Says{"act r gpu0", "act r gpu1", "blocked:budget r gpu2"}));
  m.wait(1h);
  EXPECT_EQ(m.says(), Says{"act r gpu2"});
}

TEST(Evaluate, ABudgetSurvivesARestartAndAReboot) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, cooldown: 0s, budget: {count: 1, within: 24h}, do: [notify]}\n");
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.clear();
  (void)m.look();
  m.state = load_state(save(m.state)).value();
  m.snapshot.machine.boot_id = "boot-2";
  m.now.steady = {5'000'000};
  m.now.wall += 1h;
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"blocked:budget r gpu0"});
}

TEST(Evaluate, WhatAMachineForgetsAtARebootIsAskedForAgainWhileTheFaultIsThere) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, cooldown: 0s, budget: {count: 2, within: 24h}, do: [{power-cap: "
      "{percent: 80}}]}\n");
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.wait(1h);
  EXPECT_EQ(m.says(), Says{}) << "it is in place";
  for (const char* said : {"act r gpu0", "blocked:budget r gpu0"}) {
    m.snapshot.machine.boot_id += "-again";
    m.now.steady = {5'000'000};
    m.now.wall += 1min;
    EXPECT_EQ(m.says(), Says{said});
  }
}

TEST(Evaluate, AFaultThatComesBackAfterARebootGetsItsActionsAgain) {
  Machine m("  - {name: r, when: {condition: overheating}, cooldown: 0s, do: [{power-cap: {percent: 80}}]}\n");
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.clear();
  (void)m.look();
  m.snapshot.machine.boot_id = "boot-2";
  m.now.steady = {5'000'000};
  m.now.wall += 1min;
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"}) << "the cap went with the first boot";
}

TEST(Evaluate, AClockThatIsSetForwardGivesNoBudgetBack) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, cooldown: 0s, budget: {count: 1, within: 24h}, do: [notify]}\n");
  m.confirm(Overheating);
  (void)m.look();
  m.clear();
  (void)m.look();
  m.now.wall += 24h * 365;
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"blocked:budget r gpu0"});
}

TEST(Evaluate, AClockThatIsSetBackBetweenBootsGivesNoBudgetBack) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, cooldown: 0s, budget: {count: 1, within: 24h}, do: [notify]}\n");
  m.confirm(Overheating);
  (void)m.look();
  m.clear();
  (void)m.look();
  m.snapshot.machine.boot_id = "boot-2";
  m.now.wall -= 24h * 365;
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"blocked:budget r gpu0"});
}

TEST(Evaluate, WhatWasOnlySaidIsDoneOnceTheRuleMayAct) {
  const std::string rules =
      "  - {name: r, when: {condition: overheating}, cooldown: 1h, do: [{power-cap: {percent: 80}}]}\n";
  Machine m({policy_of(rules, "mode: observe\n")});
  m.confirm(ConditionType::Overheating);
  EXPECT_EQ(m.says(), Says{"observe r gpu0"});
  m.wait(1min);
  m.set.policies = {policy_of(rules, "mode: shadow\n")};
  EXPECT_EQ(m.says(), Says{"shadow r gpu0"});
  m.wait(1min);
  m.set.policies = {policy_of(rules, "mode: enforce\n")};
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{}) << "once";
  m.set.policies = {policy_of(rules, "mode: observe\n")};
  EXPECT_EQ(m.says(), Says{}) << "less is nothing new";
}

TEST(Evaluate, AnEpisodeThatBeganInSafeModeIsActedOnWhenThatIsOver) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n");
  m.confirm(ConditionType::Overheating);
  EvaluateOptions safe;
  safe.ceiling = Mode::Observe;
  EXPECT_EQ(m.says(safe), Says{"observe r gpu0"});
  m.state = load_state(save(m.state)).value();
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, AClockThatJumpsWhileTheMachineStartsGivesNoBudgetBack) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, cooldown: 0s, budget: {count: 1, within: 24h}, do: "
      "[{power-cap: {percent: 80}}]}\n");
  m.confirm(ConditionType::Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.wait(1min);
  m.says();
  // Another boot, a minute old; its clock is ten years ahead until the network is there.
  m.snapshot.machine.boot_id = "boot-2";
  const auto right = m.now.wall;
  m.now = {right + 24h * 3650, {60'000'000}};
  EXPECT_EQ(m.says(), Says{"blocked:budget r gpu0"});
  m.now = {right + 2min, {120'000'000}};
  EXPECT_EQ(m.says(), Says{}) << "still blocked, and said already";
  // After ten minutes the clock is believed, and a day later the budget is there again.
  m.now = {right + 25h, {25LL * 3'600'000'000}};
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, OnAHealthyMachineNothingIsComputed) {
  Machine m(
      "  - {name: r, when: {all: [{condition: overheating}, {reading: {name: temperature.junction, above: 90 C}}]},"
      " for: 1m, do: [notify]}\n"
      "  - {name: e, when: {event: {type: device.removed, within: 1h}}, do: [notify]}\n");
  m.read(ReadingId::TemperatureJunction, 95);
  EXPECT_FALSE(may_matter(m.snapshot, m.set, m.state));
  m.confirm(ConditionType::Overheating);
  EXPECT_TRUE(may_matter(m.snapshot, m.set, m.state));
  m.look();
  m.clear();
  EXPECT_TRUE(may_matter(m.snapshot, m.set, m.state)) << "time is being counted";
  m.look();
  EXPECT_FALSE(may_matter(m.snapshot, m.set, m.state));
  m.snapshot.events = {{m.now.wall, "device.removed", "gpu0", std::nullopt}};
  EXPECT_TRUE(may_matter(m.snapshot, m.set, m.state));
  EXPECT_EQ(longest_window(m.set), 1h);
}

TEST(Evaluate, WhatWasRefusedHoldsNothing) {
  Machine m(
      "  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}], revert_when: "
      "{reading: {name: temperature.junction, below: 80 C}}}\n");
  m.confirm(ConditionType::Overheating);
  m.read(ReadingId::TemperatureJunction, 105);
  const auto decided = m.look();
  ASSERT_EQ(decided.size(), 1U);
  forget_hold(m.state, decided.front().actions.front());
  EXPECT_TRUE(is_active(m.state, "p/r", "gpu0"));
  m.read(ReadingId::TemperatureJunction, 60);
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{}) << "nothing is in place that could be undone";
}

TEST(Evaluate, LevelAndProfileAreOneThing) {
  Machine m(
      "  - {name: a, when: {condition: overheating}, do: [{performance-level: {level: low}}]}\n"
      "  - {name: b, when: {condition: overheating}, do: [{power-profile: {profile: COMPUTE}}]}\n");
  m.confirm(ConditionType::Overheating);
  EXPECT_EQ(m.says(), (Says{"act a gpu0", "blocked:conflict b gpu0"}));
}

TEST(Evaluate, TheBreakerOpensLoudlyAndStaysOpenForWhatChangesSomething) {
  Machine m({policy_of("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n"
                       "  - {name: tell, when: {condition: overheating}, do: [notify]}\n",
                       "mode: enforce\nlimits: {breaker: {count: 2, within: 10m}}\n")},
            3);
  m.confirm(Overheating, 0), m.confirm(Overheating, 1);
  (void)m.look();
  EXPECT_FALSE(m.tripped);
  m.confirm(Overheating, 2);
  EXPECT_EQ(m.says(), (Says{"blocked:breaker r gpu2", "act tell gpu2"}));
  EXPECT_TRUE(m.tripped);
  m.wait(24h);
  EXPECT_EQ(m.says(), Says{}) << "time alone does not close it";
  reset_breaker(m.state);
  EXPECT_EQ(m.says(), Says{"act r gpu2"});
}

TEST(Evaluate, TheMachinesLimitHoldsOverAllRules) {
  Machine m(
      {policy_of("  - {name: a, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n"
                 "  - {name: b, when: {condition: overheating}, do: [{clock-cap: {mhz: 1500}}]}\n",
                 "mode: enforce\nlimits: {actions: {count: 3, within: 1h}, breaker: {count: 100, within: 1m}}\n")},
      2);
  m.confirm(Overheating, 0), m.confirm(Overheating, 1);
  EXPECT_EQ(m.says(), (Says{"act a gpu0", "act a gpu1", "act b gpu0", "blocked:machine-limit b gpu1"}));
}

TEST(Evaluate, UnlessBusyBlocksAlsoWhenThatIsNotKnown) {
  Machine m("  - {name: r, when: {condition: gpu-hang}, unless: {busy: true}, do: [gpu-reset]}\n");
  m.confirm(GpuHang);
  m.snapshot.devices[0].busy.reset();
  EXPECT_EQ(m.says(), Says{"blocked:busy r gpu0"});
  m.snapshot.devices[0].busy = true;
  EXPECT_EQ(m.says(), Says{});
  m.snapshot.devices[0].busy = false;
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
}

TEST(Evaluate, UnlessWindowIsLocalTime) {
  Machine m("  - {name: r, when: {condition: gpu-hang}, unless: {window: \"Mon 00:00-01:00\"}, do: [notify]}\n");
  m.snapshot.utc_offset_s = -3600;  // it is Sunday, 23:00
  m.confirm(GpuHang);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  Machine n("  - {name: r, when: {condition: gpu-hang}, unless: {window: \"Mon 00:00-01:00\"}, do: [notify]}\n");
  n.confirm(GpuHang);
  EXPECT_EQ(n.says(), Says{"blocked:window r gpu0"});
  n.wait(1h);
  EXPECT_EQ(n.says(), Says{"act r gpu0"});
}

TEST(Evaluate, ModesOfRulesAndTheCeiling) {
  const std::string rules =
      "  - {name: a, when: {condition: overheating}, do: [notify]}\n  - {name: b, mode: shadow, when: {condition: "
      "overheating}, do: [notify]}\n";
  Machine m({policy_of(rules, "mode: enforce\n")});
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), (Says{"act a gpu0", "shadow b gpu0"}));
  Machine safe({policy_of(rules, "mode: enforce\n")});
  safe.confirm(Overheating);
  EXPECT_EQ(safe.says({Mode::Observe}), (Says{"observe a gpu0", "observe b gpu0"}));
  Machine standard({policy_of(rules, "")});
  standard.confirm(Overheating);
  EXPECT_EQ(standard.says(), (Says{"observe a gpu0", "shadow b gpu0"})) << "a policy that says nothing observes";
}

TEST(Evaluate, WhatIsInShadowTakesNothingFromWhatIsEnforced) {
  Machine m(
      {policy_of("  - {name: s, mode: shadow, when: {condition: overheating}, do: [{power-cap: {percent: 70}}]}\n"
                 "  - {name: e, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n",
                 "mode: enforce\nlimits: {actions: {count: 1, within: 1h}}\n")});
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), (Says{"shadow s gpu0", "act e gpu0"}));
}

TEST(Evaluate, RevertWhenUndoesWhatCanBeUndoneOnce) {
  Machine m(
      "  - name: r\n    when: {condition: thermal-throttling}\n    do: [{power-cap: {percent: 80}}, notify]\n"
      "    revert_when: {reading: {name: temperature.junction, below: 75 C}, for: 2m}\n");
  m.confirm(ThermalThrottling);
  m.read(ReadingId::TemperatureJunction, 110);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.clear();
  m.read(ReadingId::TemperatureJunction, 70);
  EXPECT_EQ(m.says(), Says{});
  m.wait(2min);
  const auto d = m.look();
  ASSERT_EQ(d.size(), 1U);
  EXPECT_EQ(d[0].outcome, Outcome::Revert);
  ASSERT_EQ(d[0].actions.size(), 1U) << "what was told cannot be untold";
  EXPECT_EQ(d[0].actions[0].kind, ActionKind::PowerCap);
  m.wait(1h);
  EXPECT_EQ(m.says(), Says{});
}

TEST(Evaluate, WhatConcernsTheMachineStaysUntilItsLastGpuIsWell) {
  Machine m(
      "  - {name: r, when: {condition: gpu-hang}, do: [drain, notify], revert_when: {not: {condition: gpu-hang}}}\n",
      2);
  m.confirm(GpuHang, 0), m.confirm(GpuHang, 1);
  const auto d = m.look();
  ASSERT_EQ(d.size(), 2U);
  EXPECT_EQ(d[0].actions.size(), 2U);
  EXPECT_EQ(d[1].actions.size(), 1U) << "the machine is drained once";
  m.wait(1min);
  m.clear(0);
  EXPECT_EQ(m.says(), Says{}) << "the other card still hangs";
  m.clear(1);
  m.wait(1min);
  EXPECT_EQ(m.says(), Says{"revert r gpu1"});
}

TEST(Evaluate, ASuspendCountsForNoTime) {
  Machine m("  - {name: r, when: {condition: overheating}, for: 5m, do: [notify]}\n");
  const EvaluateOptions options{Mode::Enforce, 1min};
  m.confirm(Overheating);
  (void)m.look(options);
  m.wait(8h);
  EXPECT_EQ(m.says(options), Says{});
  for (int i = 0; i < 4; ++i) {
    m.wait(1min);
    EXPECT_EQ(m.says(options), Says{});
  }
  m.wait(1min);
  EXPECT_EQ(m.says(options), Says{"act r gpu0"});
}

TEST(Evaluate, ARuleThatIsTakenAwayIsUndone) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n");
  m.confirm(Overheating);
  (void)m.look();
  m.set.policies = {policy_of("  - {name: other, when: {condition: gpu-hang}, do: [notify]}\n")};
  EXPECT_EQ(m.says(), Says{"revert r gpu0"});
  EXPECT_EQ(m.says(), Says{});
}

TEST(Evaluate, AnExpiredPolicyIsUndone) {
  Machine m({policy_of("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n")});
  m.set.policies[0].expires = m.now.wall + 1h;
  m.confirm(Overheating);
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.wait(1h);
  EXPECT_EQ(m.says(), Says{"revert r gpu0"});
}

TEST(Evaluate, SafeModeUndoesNothingEither) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n");
  m.confirm(Overheating);
  (void)m.look();
  m.set.policies.clear();
  EXPECT_EQ(m.says({Mode::Observe}), Says{});
  EXPECT_EQ(m.says(), Says{"revert r gpu0"});
}

TEST(Evaluate, OfTwoRulesThatContradictTheFirstHasIt) {
  Machine m(
      "  - {name: a, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n"
      "  - {name: b, when: {condition: overheating}, do: [{power-cap: {watts: 300}}]}\n");
  m.confirm(Overheating);
  const auto d = m.look();
  ASSERT_EQ(d.size(), 2U);
  EXPECT_EQ(d[0].rule, "a");
  EXPECT_EQ(d[1].block, Block::Conflict);
  EXPECT_NE(d[1].reason.find("rule p/a holds power-cap there"), std::string::npos) << d[1].reason;
}

TEST(Evaluate, ALadderGoesOnAfterTheStepBefore) {
  Machine m(
      "  - {name: first, when: {event: {type: condition.confirmed, condition: device-lost, count: 2, within: 24h}}, "
      "cooldown: 30d, do: [pcie-speed]}\n"
      "  - {name: next, when: {event: {type: condition.confirmed, condition: device-lost, within: 30d, after: first}}, "
      "do: [notify]}\n");
  m.confirm(DeviceLost);
  EXPECT_EQ(m.says(), Says{});
  m.clear(), m.wait(1h), m.confirm(DeviceLost);
  EXPECT_EQ(m.says(), Says{"act first gpu0"});
  m.clear(), m.wait(48h), (void)m.look(), m.confirm(DeviceLost);
  EXPECT_EQ(m.says(), Says{"act next gpu0"});
}

TEST(Evaluate, EventsOfOneGpuAreNotAnothers) {
  Machine m("  - {name: r, when: {event: {type: gpu.reset.failed, count: 2, within: 1h}}, do: [notify]}\n", 2);
  m.snapshot.events = {{m.now.wall, "gpu.reset.failed", "gpu0", {}},
                       {m.now.wall, "gpu.reset.failed", "gpu1", {}},
                       {m.now.wall, "gpu.reset.failed", "", {}}};
  EXPECT_EQ(m.says(), Says{});
  m.snapshot.events.push_back({m.now.wall, "gpu.reset.failed", "gpu1", {}});
  EXPECT_EQ(m.says(), Says{"act r gpu1"});
}

TEST(Evaluate, AnAcknowledgedConditionBeginsNothingAndEndsNothing) {
  Machine m("  - {name: r, when: {condition: gpu-missing}, do: [drain]}\n");
  m.confirm(GpuMissing);
  m.snapshot.devices[0].conditions[0].acknowledged = true;
  EXPECT_EQ(m.says(), Says{});
  m.snapshot.devices[0].conditions[0].acknowledged = false;
  EXPECT_EQ(m.says(), Says{"act r gpu0"});
  m.snapshot.devices[0].conditions[0].acknowledged = true;
  EXPECT_EQ(m.says(), Says{});
  EXPECT_EQ(m.state.holds.size(), 1U);
}

TEST(Evaluate, TargetsChooseMachineAndGpu) {
  const std::string rules = "  - {name: r, when: {condition: overheating}, do: [notify]}\n";
  const auto says = [&](const std::string& targets) {
    Machine m({policy_of(rules, "mode: enforce\ntargets: " + targets + "\n")}, 2);
    m.snapshot.machine.host = "node-7", m.snapshot.machine.labels = {{"role", "train"}};
    m.snapshot.machine.distribution = "ubuntu", m.snapshot.machine.version = "24.04",
    m.snapshot.machine.kernel = "6.12.57";
    m.snapshot.devices[0].gfx = "gfx942", m.snapshot.devices[0].vram = 192.0 * (1U << 30U),
    m.snapshot.devices[0].skus = {"Instinct MI300X", "1002:74a1"};
    m.snapshot.devices[1].gfx = "gfx1100";
    m.confirm(Overheating, 0), m.confirm(Overheating, 1);
    return m.says().size();
  };
  EXPECT_EQ(says("{host: node-*}"), 2U);
  EXPECT_EQ(says("{host: [a, \"NODE-?\"]}"), 2U);
  EXPECT_EQ(says("{host: lab-*}"), 0U);
  EXPECT_EQ(says("{labels: {role: tr*}}"), 2U);
  EXPECT_EQ(says("{labels: {rack: 1}}"), 0U);
  EXPECT_EQ(says("{gfx: gfx9*}"), 1U);
  EXPECT_EQ(says("{vram: {at_least: 64GiB}}"), 1U);
  EXPECT_EQ(says("{sku: [\"*MI300X\"]}"), 1U);
  EXPECT_EQ(says("{sku: [\"1002:74a1\"]}"), 1U);
  EXPECT_EQ(says("{distribution: ubuntu 24.04}"), 2U);
  EXPECT_EQ(says("{distribution: ubuntu 22.04}"), 0U);
  EXPECT_EQ(says("{kernel: \"6.12.*\", vendor: nvidia}"), 0U);
}

TEST(Evaluate, IsTheSameForTheSame) {
  const std::string rules =
      "  - {name: r, when: {any: [{condition: overheating}, {reading: {name: power.input, above: 300 W, clear: 250 "
      "W}}]}, for: 1m, do: [{power-cap: {percent: 80}}]}\n";
  Machine a(rules, 4), b(rules, 4);
  for (int i = 0; i < 50; ++i) {
    for (Machine* m : {&a, &b}) {
      m->read(ReadingId::PowerInput, 200 + i * 37 % 150, static_cast<std::size_t>(i) % 4);
      m->wait(20s);
    }
    EXPECT_EQ(a.says(), b.says());
    EXPECT_EQ(save(a.state), save(b.state));
  }
}

TEST(State, ReadsAsItIsWritten) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}, notify]}\n", 2);
  m.confirm(Overheating, 1);
  (void)m.look();
  const auto text = save(m.state);
  const auto again = load_state(text);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(save(*again), text);
}

TEST(State, WhatIsDamagedIsRefused) {
  Machine m("  - {name: r, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n");
  m.confirm(Overheating);
  (void)m.look();
  const auto text = save(m.state);
  for (std::size_t i = 0; i < text.size(); i += 7) EXPECT_FALSE(load_state(text.substr(0, i)).has_value());
  EXPECT_FALSE(load_state("{\"format\": 2}").has_value());
  EXPECT_FALSE(load_state("[]").has_value());
}

}  // namespace
}  // namespace gpuhealth::policy
