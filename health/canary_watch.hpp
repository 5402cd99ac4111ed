// SPDX-License-Identifier: Apache-2.0
// Measurements in, findings with their cause out: the judge, and the few measurements of each device that a cause is
// found from. The daemon and gpuhealthctl replay use the same.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "canary/stats/judge.hpp"
#include "core/condition.hpp"
#include "health/cause.hpp"

namespace gpuhealth::health {

struct CanaryFinding {
  canary::stats::Finding finding;
  CauseVerdict cause;  // "unknown" of one that is over
  // Work-arounds that are set for users (not for the canary): what hides the fault from some of them.
  std::map<std::string, std::string> environment;
};

struct CanaryOutcome {
  std::vector<CanaryFinding> findings;  // changes only
  std::optional<double> next_after_s;
  std::optional<double> y;
  bool judged = false;
};

// What a finding is for people and policies.
struct CanaryCondition {
  ConditionType type;
  Severity severity;
};
CanaryCondition condition_of(canary::stats::FindingKind kind);
std::vector<Evidence> evidence_of(const CanaryFinding& finding);

class CanaryWatch {
 public:
  CanaryOutcome observe(const canary::Measurement& m);
  void reset(std::string_view device, std::string_view canary = {});
  [[nodiscard]] std::vector<CanaryFinding> open() const;
  [[nodiscard]] std::vector<canary::stats::BaselineView> baselines() const { return judge_.baselines(); }

 private:
  struct Memory {
    std::string epoch;
    std::map<std::string, std::string> software;  // all that is known of it; each backend knows a part
    std::vector<canary::Measurement> first;       // of this software
    std::vector<canary::Measurement> earlier;     // the first of the software before
    std::deque<canary::Measurement> latest;
    std::map<std::string, CanaryFinding> open;  // with causes, as they were found
  };
  static bool is_other_software(const Memory& memory, const canary::Measurement& m);
  static void remember(Memory& memory, const canary::Measurement& m);
  [[nodiscard]] static CauseVerdict cause_of(const Memory& memory, const canary::stats::Finding& finding);
  canary::stats::Judge judge_;
  std::map<std::string, Memory, std::less<>> devices_;
};

}  // namespace gpuhealth::health
