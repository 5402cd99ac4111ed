// SPDX-License-Identifier: Apache-2.0
// Policy tests: that they fail when they must, and that those we ship hold.
#include "policy/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::policy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kHead =
    "apiVersion: gpuhealth/v1\nkind: PolicyTest\npolicy: ../../etc/policy.d/50-default.yaml\nmode: enforce\n";
TestResult run(const std::string& rest) {
  return run_test(GPUHEALTH_SOURCE_DIR "/docs/examples/x.yaml", kHead + rest);
}

TEST(PolicyTest, WhatIsNotDecidedFailsAndSaysWhere) {
  const auto r =
      run("timeline: [{at: 0s, confirm: overheating}]\nexpect:\n  - {at: 1m, rule: thermal-wall, gpu: gpu0, decision: "
          "act, do: [{power-cap: {percent: 80}}]}\n");
  EXPECT_FALSE(r.passed());
  ASSERT_EQ(r.failures.size(), 1U);
  EXPECT_THAT(r.failures[0],
              HasSubstr("x.yaml:7: not decided: at 1m rule thermal-wall about gpu0, act: power-cap percent=80"));
}

TEST(PolicyTest, WhatIsDecidedAndNotExpectedFails) {
  const auto r = run("timeline: [{at: 0s, confirm: overheating}]\nuntil: 5m\nexpect: []\n");
  ASSERT_EQ(r.failures.size(), 1U);
  EXPECT_THAT(
      r.failures[0],
      HasSubstr("decided, and not expected: 2m  act  default/thermal-wall  gpu0  power-cap percent=80, notify"));
}

TEST(PolicyTest, AnotherParameterOrReasonIsNotTheSameDecision) {
  const std::string timeline = "timeline: [{at: 0s, confirm: overheating}]\nexpect:\n  - {at: 2m, rule: thermal-wall, ";
  EXPECT_TRUE(run(timeline + "do: [{power-cap: {percent: 80}}, notify]}\n").passed());
  EXPECT_FALSE(run(timeline + "do: [{power-cap: {percent: 70}}, notify]}\n").passed());
  EXPECT_FALSE(run(timeline + "do: [notify]}\n").passed());
  EXPECT_FALSE(run(timeline + "because: the moon}\n").passed());
  EXPECT_FALSE(run(timeline + "decision: shadow}\n").passed());
}

TEST(PolicyTest, MistakesOfItsFileHavePlaces) {
  const auto r =
      run("timeline: [{at: 5, confirm: overheeting}, {att: 1m}]\nexpect: [{at: 1m, rule: x, decision: acts}]\n");
  std::vector<std::string> said;
  for (const auto& m : r.mistakes) said.push_back(yaml::line_of("t", m));
  EXPECT_THAT(said, ElementsAre("t:5:17: at: \"5\" lacks its unit; write 5s or 5m",
                                "t:5:29: confirm: there is no \"overheeting\"; did you mean \"overheating\"?",
                                "t:5:43: an entry lacks its key \"at\"",
                                "t:5:44: an entry has no key \"att\"; did you mean \"at\"?",
                                "t:6:38: decision: there is no \"acts\"; did you mean \"act\"?"));
}

TEST(PolicyTest, APolicyWithAMistakeIsNamed) {
  const auto r =
      run_test(GPUHEALTH_SOURCE_DIR "/docs/examples/x.yaml",
               "apiVersion: gpuhealth/v1\nkind: PolicyTest\npolicy: nothing.yaml\ntimeline: [{at: 0s}]\nexpect: []\n");
  ASSERT_EQ(r.policy_mistakes.size(), 1U);
  EXPECT_THAT(r.policy_mistakes[0], HasSubstr("nothing.yaml"));
}

TEST(PolicyTest, AYearInMillisecondsIsRefused) {
  EXPECT_FALSE(run("step: 1ms\nuntil: 365d\ntimeline: [{at: 0s}]\nexpect: []\n").mistakes.empty());
}

TEST(ShippedPolicies, HoldTheirTests) {
  std::size_t tests = 0;
  for (const char* folder : {"/etc/policy.d/tests", "/docs/examples"}) {
    for (const auto& entry : fs::directory_iterator(std::string(GPUHEALTH_SOURCE_DIR) + folder)) {
      const auto name = entry.path().filename().string();
      if (entry.path().extension() != ".yaml" ||
          (std::string(folder) == "/docs/examples" && !name.ends_with(".test.yaml")))
        continue;
      const auto result = run_test(entry.path().string());
      EXPECT_TRUE(result.passed()) << name;
      for (const auto& text : result.failures) ADD_FAILURE() << text;
      for (const auto& m : result.mistakes) ADD_FAILURE() << yaml::line_of(name, m);
      ++tests;
    }
  }
  EXPECT_GE(tests, 11U);
}

TEST(ShippedPolicies, AllExamplesAndTheDefaultAreSound) {
  for (const char* file : {"etc/policy.d/50-default.yaml", "docs/examples/workstation.yaml", "docs/examples/lab.yaml",
                           "docs/examples/inference-fleet.yaml"}) {
    const auto loaded = load_named({std::string(GPUHEALTH_SOURCE_DIR) + "/" + file});
    ASSERT_TRUE(loaded.has_value()) << file;
    EXPECT_EQ(loaded->problem(), "");
  }
}

TEST(ShippedPolicies, TheDefaultObserves) {
  const auto loaded = load_named({GPUHEALTH_SOURCE_DIR "/etc/policy.d/50-default.yaml"}).value();
  EXPECT_EQ(loaded.set.policies.at(0).mode, Mode::Observe);
  for (const auto& rule : loaded.set.policies[0].rules) EXPECT_FALSE(rule.mode) << rule.name;
}

}  // namespace
}  // namespace gpuhealth::policy
