// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "sim/state_fields.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::sim {
namespace {

using testing::HasSubstr;

std::string mistakes(const std::string& text) {
  const auto scenario = parse_scenario(text, "x.yaml");
  return scenario ? "none" : scenario.error().text;
}

constexpr const char* kCard = "cards: {a: {model: rx7900xtx}}\n";

TEST(Scenario, IsReadWhole) {
  const auto s = parse_scenario(R"(
name: example
duration: 2min
seed: 7
noise: false
kernel: 6.17.9
writes: allowed
cards:
  a: {model: rx7900xtx, load: true, state: {junction: 99, ras: {umc: {correctable: 3}}}}
  b: {model: phoenix}
timeline:
  - at: 40s
    card: b
    unplug: true
  - at: 500ms
    card: a
    set: {junction: {to: 112, over: 20s}, runtime_status: suspended}
  - at: 10s
    card: a
    fault: {files: [gpu_metrics, "hwmon/*_input"], error: EIO, for: 5s}
expect:
  - {condition: overheating, card: a, confirmed_by: 40s, severity: critical}
  - {reads: "hwmon/*", card: a, from: 10s, to: 20s, at_most: 0}
  - {reading: temperature.edge, card: b, status: asleep, by: 30s}
)",
                                "x.yaml");
  ASSERT_TRUE(s) << s.error().text;
  EXPECT_EQ(s->name, "example");
  EXPECT_EQ(s->duration_s, 120);
  EXPECT_EQ(s->seed, 7u);
  EXPECT_FALSE(s->noise);
  EXPECT_EQ(s->facts.kernel_release, "6.17.9");
  EXPECT_TRUE(s->writes_allowed);
  ASSERT_EQ(s->cards.size(), 2u);
  EXPECT_EQ(s->cards[0].card.state.junction_c, 99);
  ASSERT_EQ(s->cards[0].card.state.ras.size(), 1u);
  EXPECT_EQ(s->cards[0].card.state.ras[0].correctable, 3u);
  EXPECT_EQ(s->cards[1].card.model.name, phoenix_apu().name);

  ASSERT_EQ(s->timeline.size(), 3u);  // by time
  EXPECT_EQ(s->timeline[0].at_s, 0.5);
  const auto& set = std::get<SetState>(s->timeline[0].what);
  EXPECT_EQ(set.numbers.at("junction").to, 112);
  EXPECT_EQ(set.numbers.at("junction").over_s, 20);
  EXPECT_EQ(set.runtime_status, "suspended");
  const auto& fault = std::get<SetFault>(s->timeline[1].what);
  EXPECT_EQ(fault.files, (std::vector<std::string>{"gpu_metrics", "hwmon/*_input"}));
  EXPECT_EQ(fault.fault->kind, Fault::Kind::ReadError);
  EXPECT_EQ(fault.fault->value, EIO);
  EXPECT_EQ(fault.for_s, 5);
  EXPECT_TRUE(std::holds_alternative<Unplug>(s->timeline[2].what));

  ASSERT_EQ(s->expectations.size(), 3u);
  const auto& condition = std::get<ExpectCondition>(s->expectations[0].what);
  EXPECT_EQ(condition.type, ConditionType::Overheating);
  EXPECT_EQ(condition.confirmed_by_s, 40);
  EXPECT_EQ(condition.severity, Severity::Critical);
  const auto& access = std::get<ExpectAccess>(s->expectations[1].what);
  EXPECT_EQ(access.at_most, 0u);
  EXPECT_EQ(access.to_s, 20);
  EXPECT_EQ(std::get<ExpectReading>(s->expectations[2].what).status, ReadingStatus::Asleep);
}

TEST(Scenario, HasAKernelThatPinsMemoryInItsOwnWay) {
  const auto s = parse_scenario(R"(
cards: {a: {model: rx7900xtx}}
userptr: {form: healthy, slot: 5ms, cow_slot: 30ms}
opencl: true
speed_at_most: 2
ends_early: true
variables: {HSA_XNACK: "1"}
timeline:
  - {at: 9s, reboot: {kernel: 7.0.12, userptr: stall}}
expect:
  - {condition: host-copy-stall, confirmed_by: 60s, says: [cause, "changed: kernel"]}
  - {canary: triad, backend: opencl, kernel: 7.0.12, status: ok, at_least: 2}
)",
                                "x.yaml");
  ASSERT_TRUE(s) << s.error().text;
  EXPECT_EQ(s->userptr.form, UserptrForm::Healthy);
  EXPECT_EQ(s->userptr.slot_ms, 5);
  EXPECT_EQ(s->userptr.cow_slot_ms, 30);
  EXPECT_TRUE(s->needs_nodes);
  EXPECT_TRUE(s->ends_early);
  EXPECT_EQ(s->speed_at_most, 2);
  EXPECT_EQ(s->variables.at("HSA_XNACK"), "1");
  const auto& reboot = std::get<Reboot>(s->timeline[0].what);
  EXPECT_EQ(reboot.order, std::vector<std::string>{"a"});
  EXPECT_EQ(reboot.kernel, "7.0.12");
  EXPECT_EQ(reboot.userptr->form, UserptrForm::Stall);
  EXPECT_EQ(std::get<ExpectCondition>(s->expectations[0].what).says.size(), 2U);
  const auto& canary = std::get<ExpectCanary>(s->expectations[1].what);
  EXPECT_EQ(canary.canary, "triad");
  EXPECT_EQ(canary.at_least, 2U);
  EXPECT_EQ(canary.status, std::vector<std::string>{"ok"});
}

TEST(Scenario, SaysWhereAMistakeIsAndWhatWasMeant) {
  EXPECT_EQ(mistakes(std::string(kCard) + "userptr: stal\n"),
            "x.yaml:2:10: userptr: there is no \"stal\"; did you mean \"stall\"?");
  EXPECT_THAT(mistakes(std::string(kCard) + "variables: {A: \"x; rm\"}\n"), HasSubstr("one plain word each"));
  EXPECT_THAT(mistakes(std::string(kCard) + "expect:\n  - {canary: triad, status: fine}\n"),
              HasSubstr("no such status of a canary"));
  EXPECT_EQ(mistakes("nmae: x\ncards: {a: {model: rx7900xtx}}\n"),
            "x.yaml:1:1: a scenario has no key \"nmae\"; did you mean \"name\"?");
  EXPECT_EQ(mistakes("cards:\n  a: {model: rx790xtx}\n"),
            "x.yaml:2:14: model: there is no \"rx790xtx\"; did you mean \"rx7900xtx\"?");
  EXPECT_EQ(mistakes(std::string(kCard) + "timeline:\n  - {at: soon, card: a, unplug: true}\n"),
            "x.yaml:3:10: at must be a time, such as 30s, 500ms or 2min");
  EXPECT_EQ(mistakes(std::string(kCard) + "timeline:\n  - {at: 1s, card: a, set: {edge: 500}}\n"),
            "x.yaml:3:35: edge (C) must be -40 to 200");
  EXPECT_EQ(mistakes(std::string(kCard) + "timeline:\n  - {at: 1s, unplug: true}\n"),
            "x.yaml:3:22: \"unplug\" needs a card");
  EXPECT_EQ(mistakes(std::string(kCard) + "expect:\n  - {condition: overheatin, never: true}\n"),
            "x.yaml:3:17: condition: there is no \"overheatin\"; did you mean \"overheating\"?");
}

TEST(Scenario, SaysAllMistakesAtOnce) {
  const auto text = mistakes(
      "cards: {a: {model: rx7900xtx}}\n"
      "timeline:\n"
      "  - {at: 1s, card: b, unplug: true}\n"
      "  - {at: 1s, card: a}\n"
      "  - {at: 1s, card: a, fault: {files: x, error: EWRONG}}\n"
      "  - {at: 1s, card: a, fault: {files: x}}\n"
      "expect:\n"
      "  - {condition: overheating}\n"
      "  - {reads: \"*\"}\n");
  EXPECT_THAT(text, HasSubstr("x.yaml:3:"));
  EXPECT_THAT(text, HasSubstr("x.yaml:4:"));
  EXPECT_THAT(text, HasSubstr("x.yaml:5:"));
  EXPECT_THAT(text, HasSubstr("x.yaml:6:"));
  EXPECT_THAT(text, HasSubstr("x.yaml:8:"));
  EXPECT_THAT(text, HasSubstr("x.yaml:9:"));
}

TEST(Scenario, SurvivesWhatIsNoScenario) {
  for (const char* text : {"", "x", "- a", "[", "cards: []", "cards: {a: }", "cards: {a: {model: rx580, model: rx580}}",
                           "? [a]\n: b", "cards: {? {b: c} : {model: rx580}}", "&a [*a]", "\"\\x00\"", "timeline: 3",
                           "cards: {a: {model: rx580}}\nexpect: [[[[]]]]"}) {
    EXPECT_NE(mistakes(text), "none") << text;
  }
  EXPECT_THAT(mistakes(std::string(2 << 20, 'a')), HasSubstr("larger than 1 MiB"));
}

TEST(Seconds, HaveUnits) {
  EXPECT_EQ(parse_seconds("30s"), 30);
  EXPECT_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_EQ(parse_seconds("2min"), 120);
  EXPECT_EQ(parse_seconds("1h"), 3600);
  EXPECT_EQ(parse_seconds("1.5"), 1.5);
  for (const char* text : {"", "s", "-1s", "3 s", "3weeks", "1e300", "nan"}) EXPECT_FALSE(parse_seconds(text)) << text;
}

TEST(StateField, EachSetsWhatItGets) {
  for (const auto& field : all_state_fields()) {
    CardState state;
    const double value = field.high < 13 ? field.high : 13;
    field.set(state, value);
    EXPECT_NEAR(field.get(state), value, 1e-6) << field.name;
    CardState other;
    EXPECT_NE(field.get(state), field.get(other)) << field.name << " sets something";
  }
}

TEST(StateField, EachIsInTheDocumentation) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/simulator.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const auto& field : all_state_fields()) EXPECT_THAT(text.str(), HasSubstr("`" + std::string(field.name) + "`"));
}

}  // namespace
}  // namespace gpuhealth::sim
