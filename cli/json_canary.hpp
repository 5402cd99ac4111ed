// SPDX-License-Identifier: Apache-2.0
// JSON and pages of gpuhealthctl canary and replay.
#pragma once

#include <string_view>
#include <vector>

#include "cli/canary_results.hpp"
#include "cli/json.hpp"
#include "cli/page.hpp"

namespace gpuhealth::cli {

// One measurement beside what is known of it.
struct RunRow {
  canary::Measurement measurement;
  std::optional<double> baseline;
  std::optional<double> slower;  // times
  std::string verdict;           // "ok", "no baseline", "slower", "stall", or the status
};

inline constexpr int kCannotTell = 125;  // git bisect run: skip this one
// 0 good, 1 bad, 125 cannot tell. Good is what was compared with something: a baseline, a reference, or for the stall
// its control.
int bisect_code(const std::vector<RunRow>& rows, std::string_view verdict);

Json json_finding(const health::CanaryFinding& finding);
Json json_baselines(const std::vector<canary::stats::BaselineView>& baselines);
Json json_replay(const Replay& replay);
Json json_comparison(std::string_view before, std::string_view after, const std::vector<Comparison>& rows);
Json json_canaries();
Json json_run(const std::vector<RunRow>& rows, std::string_view verdict);

Page render_replay(const Replay& replay, const Terminal& terminal);
Page render_baselines(const std::vector<canary::stats::BaselineView>& baselines, const Terminal& terminal);
Page render_comparison(std::string_view before, std::string_view after, const std::vector<Comparison>& rows,
                       const Terminal& terminal);
Page render_canaries(const Terminal& terminal);
Page render_run(const std::vector<RunRow>& rows, std::string_view verdict, const Terminal& terminal);

}  // namespace gpuhealth::cli
