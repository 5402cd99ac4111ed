// SPDX-License-Identifier: Apache-2.0
// Files of result lines: reading, judging and comparing them, without a daemon.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "canary/baseline_reset.hpp"
#include "canary/measurement.hpp"
#include "health/canary_watch.hpp"

namespace gpuhealth::cli {

inline constexpr const char* kResultsFile = "/var/lib/gpuhealthd/canary/results.jsonl";

using canary::BaselineReset;

struct BadLine {
  std::size_t line = 0;
  std::string reason;
};

struct ResultFile {
  std::string path;
  std::vector<std::variant<canary::Measurement, BaselineReset>> entries;  // as in the file
  std::vector<BadLine> bad;
  std::size_t lines = 0;
};
// `silent_gate`: of lines that do not state how sure it is that nobody else was there.
Result<ResultFile> read_results(const std::string& path, canary::Gate silent_gate);
ResultFile parse_results(std::string_view text, canary::Gate silent_gate);

struct Replay {
  std::size_t lines = 0, judged = 0;
  std::vector<BadLine> bad;
  std::vector<health::CanaryFinding> findings;  // every change, in order
  std::vector<health::CanaryFinding> open;      // at the end
  std::vector<canary::stats::BaselineView> baselines;
};
Replay replay(const ResultFile& file);
bool anything_confirmed(const Replay& replay);

// Before and after a change of software, one metric a row.
struct Comparison {
  std::string canary, metric, unit;
  canary::Better better{};
  std::size_t machines = 0;  // with both epochs
  std::size_t before_runs = 0, after_runs = 0;
  double before = 0, after = 0;                      // medians; of the machines' medians where there are several
  double slower = 1;                                 // times
  std::optional<canary::stats::FleetVerdict> fleet;  // with two machines and more
  std::string verdict;                               // "same", "slower", "faster", "too few runs"
};
// An epoch by its hash, the beginning of one, or any value of its fields, such as a kernel release.
std::vector<Comparison> compare_epochs(const std::vector<ResultFile>& files, std::string_view before,
                                       std::string_view after);

}  // namespace gpuhealth::cli
