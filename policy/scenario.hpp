// SPDX-License-Identifier: Apache-2.0
// Tests of policies: a timeline of what GPUs say, and the decisions that must come of it, no more and no fewer.
// docs/policy.md has the form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/evaluate.hpp"
#include "policy/layers.hpp"

namespace gpuhealth::policy {

struct TimedDecision {
  Duration at{};
  Decision decision;
};

struct Expectation {
  Duration at{};
  std::string rule;
  std::string gpu;  // empty: any
  std::optional<Outcome> outcome;
  std::optional<Block> block;
  std::vector<ActionKind> actions;                         // empty: not looked at
  std::vector<std::map<std::string, std::string>> params;  // those stated, of each action
  std::vector<std::string> because;                        // parts of the reason
  int line = 0;
};

struct TestResult {
  std::string file;
  std::string name;
  std::vector<yaml::Mistake> mistakes;       // of the file; then it was not run
  std::vector<std::string> policy_mistakes;  // "FILE:LINE:COLUMN: …", of the policies under test
  std::vector<TimedDecision> decisions;
  std::vector<std::string> failures;  // one sentence each
  [[nodiscard]] bool passed() const { return mistakes.empty() && policy_mistakes.empty() && failures.empty(); }
};
TestResult run_test(const std::string& path);
// Of a text; policies are found beside `path`.
TestResult run_test(const std::string& path, std::string_view text);

// "5m  act  lab/too-hot  gpu0  power-cap watts=250, notify  (reason)".
std::string line_of(const TimedDecision& decision);
std::string text_of(const ActionRequest& action);  // "power-cap watts=250"

}  // namespace gpuhealth::policy
