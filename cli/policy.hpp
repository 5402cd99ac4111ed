// SPDX-License-Identifier: Apache-2.0
// What gpuhealthctl policy shows, as text and as JSON (docs/json.md).
#pragma once

#include <string>
#include <vector>

#include "cli/canary_results.hpp"
#include "cli/json.hpp"
#include "cli/page.hpp"
#include "policy/bundle.hpp"
#include "policy/layers.hpp"
#include "policy/scenario.hpp"

namespace gpuhealth::cli {

struct CheckedFile {
  std::string file;
  std::string kind;  // "Policy" or "PolicyTest"
  std::string name;
  std::size_t rules = 0;
  std::vector<yaml::Mistake> mistakes;
};
// Policies and policy tests; a folder: its *.yaml.
Result<std::vector<CheckedFile>> check_policies(const std::vector<std::string>& paths);
bool all_valid(const std::vector<CheckedFile>& files);
Page render_check(const std::vector<CheckedFile>& files, const Terminal& terminal);
Json json_check(const std::vector<CheckedFile>& files);

// Files of policy tests; a folder: those *.yaml in it whose kind is PolicyTest.
Result<std::vector<std::string>> find_tests(const std::vector<std::string>& paths);
Page render_tests(const std::vector<policy::TestResult>& results, bool decisions, const Terminal& terminal);
Json json_tests(const std::vector<policy::TestResult>& results);
Json json_decision(const policy::Decision& decision);

struct ShownPolicies {
  policy::MachineFacts facts;
  policy::Loaded loaded;
};
Page render_policies(const ShownPolicies& shown, bool effective, const Terminal& terminal);
Json json_policies(const ShownPolicies& shown);

Page render_refusal(const policy::Refusal& refusal, const Terminal& terminal);
Json json_refusal(const policy::Refusal& refusal);
Json json_bundle(const policy::Verified& verified);
Page render_bundle(const policy::Verified& verified, const Terminal& terminal);
Json json_installed(const policy::Installed& installed);

// What a policy would have done on recorded canary results: their findings as conditions, a GPU a device.
struct PolicyReplay {
  struct Entry {
    WallTime time;
    policy::Decision decision;
  };
  std::vector<Entry> decisions;
};
PolicyReplay replay_policies(const ResultFile& file, const policy::PolicySet& set);
Page render_policy_replay(const PolicyReplay& replay, const Terminal& terminal);
Json json_policy_replay(const PolicyReplay& replay);

}  // namespace gpuhealth::cli
