// SPDX-License-Identifier: Apache-2.0
#include "canary/stats/detectors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuhealth::canary::stats {
namespace {

constexpr double kMadToSigma = 1.4826;

// Collapse.
const double kFirst = std::log(1.5);
const double kAgain = std::log(1.4);
const double kOver = std::log(1.2);
const double kTwice = std::log(1.9);  // 2x, with the noise of a run
const double kEightfold = std::log(8.0);
constexpr double kShare = 0.8;
constexpr double kEightfoldSeconds = 180;
constexpr double kTwiceSeconds = 300;
constexpr double kSeconds = 600;
// A longer pause between two runs is not time that was seen.
constexpr double kLongestStep = 150;

// SPRT.
const double kSame = std::log(1.02);
const double kSlower = std::log(1.10);
constexpr double kAcceptSlower = 13.8;  // ln(1e6)
constexpr double kAcceptSame = -6.9;
constexpr int kLeastRuns = 6;

// Stall.
constexpr double kStallMsPerSlot = 900;
constexpr double kStallRatio = 30;
constexpr double kStallSystemMs = 100;
constexpr std::size_t kStallMappings = 3;
constexpr double kStallApart = 15;
constexpr double kLeastControlMs = 0.01;  // a control faster than the clock's grain proves no ratio

}  // namespace

double long_run_variance(double sigma) {
  return sigma * sigma * (1 + kCorrelation) / (1 - kCorrelation);
}

double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> copy(values.begin(), values.end());
  const auto middle = copy.begin() + static_cast<std::ptrdiff_t>(copy.size() / 2);
  std::ranges::nth_element(copy, middle);
  if (copy.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(copy.begin(), middle)) / 2;
}

Baseline baseline_of(std::span<const double> log_times, double sigma_floor) {
  Baseline out;
  out.reference = median(log_times);
  std::vector<double> distances(log_times.begin(), log_times.end());
  for (auto& d : distances) d = std::abs(d - out.reference);
  out.sigma = std::max(kMadToSigma * median(distances), sigma_floor);
  return out;
}

Cusum::Parameters Cusum::parameters(double sigma) {
  Parameters p{};
  p.kappa = std::max(0.04, 2.5 * sigma + 0.015);
  p.clip_low = -0.05;
  p.clip_high = std::max(0.15, p.kappa + 0.11);
  p.threshold = std::max(0.9, 30 * long_run_variance(sigma) / (2 * (p.kappa - 0.015)));
  return p;
}

bool Cusum::step(double y) {
  last_.at(seen_++ % kRecent) = y;
  sum_ = std::max(0.0, sum_ + std::clamp(y, p_.clip_low, p_.clip_high) - p_.kappa);
  return sum_ >= p_.threshold && recent() >= std::log(1.06);
}

double Cusum::recent() const {
  return median(std::span(last_).first(std::min(seen_, kRecent)));
}

Sprt::Sprt(double sigma) {
  const double variance = long_run_variance(sigma) + 2 * kBootSigma * kBootSigma;
  weight_ = (kSlower - kSame) / variance;
}

Sprt::Answer Sprt::step(double y) {
  if (answer_ != Answer::Undecided) return answer_;
  sum_ += weight_ * (std::clamp(y, -0.1, 0.2) - (kSame + kSlower) / 2);
  if (++runs_ < kLeastRuns) return answer_;
  if (sum_ >= kAcceptSlower) answer_ = Answer::Slower;
  if (sum_ <= kAcceptSame) answer_ = Answer::Same;
  return answer_;
}

double Collapse::needed_s() const {
  if (all_censored_or_8x_) return kEightfoldSeconds;
  return all_2x_ ? kTwiceSeconds : kSeconds;
}

Collapse::Step Collapse::step(double time_s, double y, bool censored, bool quiet) {
  const bool bad = censored || y >= kAgain;
  if (state_ == State::Calm) {
    if (!censored && y < kFirst) return {};
    *this = Collapse();
    state_ = State::Checking;
    since_ = last_ = time_s;
  } else if (const double gap = time_s - last_; gap > 0) {
    const double seen = std::min(gap, kLongestStep);
    any_s_ += seen;
    if (quiet) quiet_s_ += seen;
    last_ = time_s;
  }
  ++runs_;
  bad_ += bad ? 1 : 0;
  if (bad) {
    all_censored_or_8x_ = all_censored_or_8x_ && (censored || y >= kEightfold);
    all_2x_ = all_2x_ && (censored || y >= kTwice);
  }
  return check(time_s, y, bad);
}

Collapse::Step Collapse::check(double time_s, double y, bool bad) {
  if (state_ == State::Checking) {
    if (!bad) {
      state_ = State::Calm;
      return {};
    }
    if (runs_ == 1) return {state_, 15.0};
    if (runs_ == 2) return {state_, std::max(1.0, since_ + 60 - time_s)};
    state_ = State::Suspect;
    return {state_, 60.0};
  }
  good_in_a_row_ = y < kOver && !bad ? good_in_a_row_ + 1 : 0;
  if (good_in_a_row_ >= 3) {
    state_ = State::Calm;
    return {};
  }
  const double seen = all_censored_or_8x_ ? any_s_ : quiet_s_;
  if (state_ == State::Suspect && seen >= needed_s() && bad_ >= kShare * runs_) state_ = State::Confirmed;
  return {state_, state_ == State::Confirmed ? std::nullopt : std::optional(60.0)};
}

StallVerdict judge_mappings(std::span<const Mapping> mappings) {
  StallVerdict out;
  std::size_t stalled = 0;
  for (const auto& m : mappings) {
    const double slots = std::max(1, m.slots);
    const double ratio = m.ms / std::max(m.control_ms, kLeastControlMs);
    out.worst_ratio = std::max(out.worst_ratio, ratio);
    out.worst_ms_per_slot = std::max(out.worst_ms_per_slot, m.ms / slots);
    if (m.ms >= kStallMsPerSlot * slots && ratio >= kStallRatio && m.system_ms >= kStallSystemMs) ++stalled;
  }
  out.stalled = stalled >= kStallMappings && stalled == mappings.size();
  return out;
}

Stall::State Stall::step(double time_s, bool stalled) {
  if (!stalled) {
    state_ = State::Healthy;
  } else if (state_ == State::Healthy) {
    state_ = State::Suspect;
    first_ = time_s;
  } else if (state_ == State::Suspect && time_s - first_ >= kStallApart) {
    state_ = State::Confirmed;
  }
  return state_;
}

Overlap judge_overlap(double fraction, double stretch) {
  if (!std::isfinite(fraction) || !std::isfinite(stretch)) return Overlap::Unclear;
  if (stretch >= 1.5) return Overlap::Contended;
  if (fraction < 0.1 && stretch < 1.2) return Overlap::Serialized;
  return fraction >= 0.5 ? Overlap::Parallel : Overlap::Unclear;
}

FleetVerdict judge_fleet(std::span<const double> log_ratios) {
  FleetVerdict out;
  out.machines = log_ratios.size();
  if (log_ratios.empty()) return out;
  const double middle = median(log_ratios);
  std::vector<double> distances(log_ratios.begin(), log_ratios.end());
  for (auto& d : distances) d = std::abs(d - middle);
  const double sigma = std::max(0.01, kMadToSigma * median(distances));
  out.ratio = std::exp(middle);
  out.z = middle / (1.2533 * sigma / std::sqrt(static_cast<double>(log_ratios.size())));
  out.slower = log_ratios.size() >= 5 && out.z >= 6 && middle >= std::log(1.015);
  return out;
}

}  // namespace gpuhealth::canary::stats
