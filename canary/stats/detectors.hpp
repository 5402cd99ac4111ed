// SPDX-License-Identifier: Apache-2.0
// The tests behind every verdict: small state machines over y = ln(time / reference), one value a run. No clock, no
// I/O. Parameters and where they come from: docs/detection.md.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "canary/measurement.hpp"

namespace gpuhealth::canary::stats {

// Lag-one correlation of runs five minutes apart, and how much a reboot alone moves a metric (relative).
inline constexpr double kCorrelation = 0.7;
inline constexpr double kBootSigma = 0.007;
// sigma^2 (1 + phi) / (1 - phi): the variance that a long sum of correlated runs has per run.
double long_run_variance(double sigma);

// Median and noise of the first 48 accepted runs.
inline constexpr std::size_t kBaselineRuns = 48;
struct Baseline {
  double reference = 0;  // ln(time)
  double sigma = 0;      // relative; 1.4826 MAD, not below the canary's floor
};
Baseline baseline_of(std::span<const double> log_times, double sigma_floor);
double median(std::span<const double> values);  // of a copy; 0 for none

// Slow drift: S = max(0, S + clip(y) - kappa), alarm at S >= H when the median of the last 12 is at least 1.06x.
class Cusum {
 public:
  struct Parameters {
    double kappa, clip_low, clip_high, threshold;
  };
  static Parameters parameters(double sigma);
  explicit Cusum(double sigma) : p_(parameters(sigma)) {}
  explicit Cusum(Parameters p) : p_(p) {}
  bool step(double y);  // true while in alarm
  [[nodiscard]] double sum() const { return sum_; }
  [[nodiscard]] double recent() const;  // median of the last 12

 private:
  static constexpr std::size_t kRecent = 12;
  Parameters p_;
  double sum_ = 0;
  std::array<double, kRecent> last_{};
  std::size_t seen_ = 0;
};

// A new epoch against the last known good one: slower by 1.10x or not (at most 1.02x)?
class Sprt {
 public:
  enum class Answer : std::uint8_t { Undecided, Same, Slower };
  explicit Sprt(double sigma);
  Answer step(double y);
  [[nodiscard]] Answer answer() const { return answer_; }
  [[nodiscard]] double log_likelihood() const { return sum_; }
  [[nodiscard]] int runs() const { return runs_; }

 private:
  double weight_;
  double sum_ = 0;
  int runs_ = 0;
  Answer answer_ = Answer::Undecided;
};

// Collapse: a run of 1.5x and worse is looked at again after 15 s and 60 s, then every minute.
class Collapse {
 public:
  enum class State : std::uint8_t { Calm, Checking, Suspect, Confirmed };
  struct Step {
    State state = State::Calm;
    std::optional<double> next_after_s;  // when the next run is wanted; nothing: the usual schedule
  };
  // `quiet`: every client was visible before and after, and there was none. Only quiet time counts for confirmation,
  // except at 8x and worse.
  Step step(double time_s, double y, bool censored, bool quiet);
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] double since() const { return since_; }

 private:
  Step check(double time_s, double y, bool bad);
  [[nodiscard]] double needed_s() const;
  State state_ = State::Calm;
  double since_ = 0;
  double last_ = 0;
  double quiet_s_ = 0;
  double any_s_ = 0;
  int runs_ = 0, bad_ = 0, good_in_a_row_ = 0;
  bool all_censored_or_8x_ = true, all_2x_ = true;
};

// The host-copy stall: no baseline, no waiting period.
struct StallVerdict {
  bool stalled = false;    // every fresh mapping, at least three
  double worst_ratio = 0;  // to its control
  double worst_ms_per_slot = 0;
};
StallVerdict judge_mappings(std::span<const Mapping> mappings);
class Stall {
 public:
  enum class State : std::uint8_t { Healthy, Suspect, Confirmed };
  State step(double time_s, bool stalled);
  [[nodiscard]] State state() const { return state_; }

 private:
  State state_ = State::Healthy;
  double first_ = 0;
};

// Queues: what timestamps say, never the wall clock. Contention stretches kernels; serialization does not.
enum class Overlap : std::uint8_t { Parallel, Serialized, Contended, Unclear };
Overlap judge_overlap(double fraction, double stretch);

// All machines that went from one epoch to another: ln(after / before) of each.
struct FleetVerdict {
  bool slower = false;
  double ratio = 1;  // median
  double z = 0;
  std::size_t machines = 0;
};
FleetVerdict judge_fleet(std::span<const double> log_ratios);

}  // namespace gpuhealth::canary::stats
