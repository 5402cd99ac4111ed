// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include <algorithm>
#include <cmath>

namespace gpuhealth::canary::simulation {
namespace {

using stats::FindingKind;
using stats::KeyJudge;
using stats::Level;

constexpr int kRunsAYear = 105120;
constexpr double kCadence = 300;
constexpr int kRunsAWeek = 2016;
constexpr int kRunsAMonth = 8640;
constexpr double kMostRuns = 2e7;

Measurement blank(const char* epoch) {
  Measurement m;
  m.canary = "triad";
  m.metric = "time";
  m.device = "simulated";
  m.epoch = epoch;
  m.gate = Gate::Strong;
  m.value = 1;
  return m;
}

// A judge that has learned its baseline from `series`.
KeyJudge learned(Series& series, double sigma, Measurement& m) {
  KeyJudge judge(Better::Lower, std::min(sigma, 0.005));
  while (true) {
    m.value = std::exp(series.next());
    judge.observe(m);
    m.time += kCadence;
    std::vector<stats::BaselineView> view;
    judge.baselines(view, m);
    if (view.at(0).state == "good") return judge;
  }
}

Delay summary(std::vector<double>& seen, int series) {
  std::ranges::sort(seen);
  Delay out;
  out.missed = 1 - static_cast<double>(seen.size()) / series;
  if (seen.empty()) return out;
  out.median_runs = seen[seen.size() / 2];
  out.p95_runs = seen[seen.size() * 95 / 100];
  return out;
}

bool told(const stats::Outcome& out, FindingKind kind, Level level) {
  return std::ranges::any_of(out.findings, [&](const auto& f) { return f.kind == kind && f.level == level; });
}

}  // namespace

Series::Series(std::uint64_t seed, Noise noise) : random_(seed), noise_(noise) {
  reboot();
}

void Series::reboot() {
  boot_ = noise_.boot_sigma * normal_(random_);
}

double Series::next() {
  correlated_ = stats::kCorrelation * correlated_ +
                std::sqrt(1 - stats::kCorrelation * stats::kCorrelation) * noise_.sigma * 0.7 * normal_(random_);
  phase_ += 2 * M_PI / 288;
  double y = boot_ + correlated_ + noise_.sigma * 0.5 * heavy_(random_) + 0.005 * std::sin(phase_);
  if (uniform_(random_) < noise_.glitches) y += std::log(1.2) + uniform_(random_) * std::log(5 / 1.2);
  return y;
}

FalseAlarms no_fault(double sigma, int series_years, std::uint64_t seed) {
  FalseAlarms out;
  for (int i = 0; i < series_years; ++i) {
    Series series(seed + static_cast<std::uint64_t>(i), {sigma});
    Measurement m = blank("a");
    KeyJudge judge = learned(series, sigma, m);
    for (int k = 0; k < kRunsAYear; ++k) {
      if (k % kRunsAMonth == kRunsAMonth - 1) series.reboot();
      m.value = std::exp(series.next());
      const auto seen = judge.observe(m);
      m.time += seen.next_after_s.value_or(kCadence);
      for (const auto& f : seen.findings) {
        out.confirmed_a_year += f.level == Level::Confirmed ? 1 : 0;
        out.suspect_a_year += f.level == Level::Suspect ? 1 : 0;
      }
    }
  }
  out.confirmed_a_year /= series_years;
  out.suspect_a_year /= series_years;
  return out;
}

Delay drift_delay(double sigma, double factor, int count, std::uint64_t seed) {
  std::vector<double> seen;
  for (int i = 0; i < count; ++i) {
    Series series(seed + static_cast<std::uint64_t>(i), {sigma});
    Measurement m = blank("a");
    KeyJudge judge = learned(series, sigma, m);
    for (int k = 1; k <= kRunsAWeek; ++k) {
      m.value = std::exp(series.next()) * factor;
      m.time += kCadence;
      if (told(judge.observe(m), FindingKind::Drift, Level::Confirmed)) {
        seen.push_back(k);
        break;
      }
    }
  }
  return summary(seen, count);
}

Delay collapse_minutes(double sigma, double factor, double idle, Level level, int count, std::uint64_t seed) {
  std::vector<double> seen;
  constexpr double kIdleStretch = 1800;
  for (int i = 0; i < count; ++i) {
    std::mt19937_64 random(seed + 7777 + static_cast<std::uint64_t>(i));
    std::uniform_real_distribution<double> uniform(0, 1);
    const auto stretch = [&](double mean) { return -mean * std::log(1 - uniform(random)); };
    Series series(seed + static_cast<std::uint64_t>(i), {sigma});
    Measurement m = blank("a");
    KeyJudge judge = learned(series, sigma, m);
    const double start = m.time;
    m.time += uniform(random) * kCadence;
    bool free = uniform(random) < idle;
    double until = start + stretch(free ? kIdleStretch : kIdleStretch * (1 - idle) / std::max(idle, 1e-9));
    while (m.time - start < 2 * 86400) {
      while (until < m.time) {
        free = !free;
        until += stretch(free ? kIdleStretch : kIdleStretch * (1 - idle) / std::max(idle, 1e-9));
      }
      m.status = free || idle >= 1 ? Status::Ok : Status::Busy;
      m.value = std::exp(series.next()) * factor;
      const auto out = judge.observe(m);
      const bool hit = std::ranges::any_of(out.findings, [&](const auto& f) {
        return f.kind == FindingKind::Collapse && (f.level == level || f.level == Level::Confirmed);
      });
      if (hit) {
        seen.push_back((m.time - start) / 60);
        break;
      }
      m.time += out.next_after_s.value_or(kCadence);
    }
  }
  return summary(seen, count);
}

Transition epoch_change(double sigma, double factor, int count, std::uint64_t seed) {
  Transition out;
  std::vector<double> runs;
  for (int i = 0; i < count; ++i) {
    Series series(seed + static_cast<std::uint64_t>(i), {sigma});
    Measurement m = blank("a");
    KeyJudge judge = learned(series, sigma, m);
    series.reboot();
    m.epoch = "b";
    bool decided = false;
    for (int k = 1; k <= 288 && !decided; ++k) {
      m.value = std::exp(series.next()) * factor;
      m.time += kCadence;
      if (told(judge.observe(m), FindingKind::Regression, Level::Confirmed)) {
        out.slower += 1;
        runs.push_back(k);
        decided = true;
      }
      if (decided || k < 48) continue;
      std::vector<stats::BaselineView> view;
      judge.baselines(view, m);
      if (view.at(1).state == "good") {
        out.same += 1;
        decided = true;
      }
    }
    if (!decided) out.undecided += 1;
  }
  const auto delay = summary(runs, count);
  out.median_runs = delay.median_runs;
  out.p95_runs = delay.p95_runs;
  out.slower /= count;
  out.same /= count;
  out.undecided /= count;
  return out;
}

double fleet(int machines, double factor, int trials, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  int alarms = 0;
  std::vector<double> ratios(static_cast<std::size_t>(machines));
  for (int t = 0; t < trials; ++t) {
    for (auto& r : ratios) {
      r = std::log(factor) + stats::kBootSigma * std::sqrt(2.0) * normal(random) + 0.004 * normal(random);
      if (uniform(random) < 0.02) r += std::log(1.05) + uniform(random) * std::log(3 / 1.05);
    }
    alarms += stats::judge_fleet(ratios).slower ? 1 : 0;
  }
  return static_cast<double>(alarms) / trials;
}

Leak contention(double leak, int series_years, std::uint64_t seed) {
  Leak out;
  for (int i = 0; i < series_years; ++i) {
    std::mt19937_64 random(seed + 99991 + static_cast<std::uint64_t>(i));
    std::uniform_real_distribution<double> uniform(0, 1);
    std::exponential_distribution<double> gap(6 * leak / 86400);
    Series series(seed + static_cast<std::uint64_t>(i), {0.01});
    Measurement m = blank("a");
    KeyJudge judge = learned(series, 0.01, m);
    const double end = m.time + kRunsAYear * kCadence;
    double begins = leak > 0 ? m.time + gap(random) : end * 2;
    double ends = begins;
    double slower = 0;
    while (m.time < end) {
      if (m.time >= ends && m.time >= begins) {
        if (ends > begins) begins = ends + gap(random);  // the next one
        const double mean = uniform(random) < 0.1 ? 6 * 3600 : 1800;
        ends = std::max(begins, m.time) - mean * std::log(1 - uniform(random));
        slower = std::log(1.05) + uniform(random) * std::log(3 / 1.05);
      }
      const bool now = m.time >= begins && m.time < ends;
      m.value = std::exp(series.next() + (now ? slower : 0));
      const auto seen = judge.observe(m);
      for (const auto& f : seen.findings) {
        if (f.kind == FindingKind::Collapse && f.level == Level::Suspect) out.suspect += 1;
        if (f.kind == FindingKind::Collapse && f.level == Level::Confirmed) out.collapse += 1;
        if (f.kind == FindingKind::Drift && f.level == Level::Confirmed) out.drift += 1;
      }
      m.time += seen.next_after_s.value_or(kCadence);
    }
  }
  out.suspect /= series_years;
  out.collapse /= series_years;
  out.drift /= series_years;
  return out;
}

std::vector<double> log_run_length(double sigma, const std::vector<double>& thresholds, int alarms,
                                   std::uint64_t seed) {
  std::vector<double> out;
  for (const double threshold : thresholds) {
    auto p = stats::Cusum::parameters(sigma);
    p.threshold = threshold;
    Series series(seed, {sigma, 0, 0});
    double runs = 0;
    for (int a = 0; a < alarms; ++a) {
      stats::Cusum cusum(p);
      do {
        runs += 1;
        cusum.step(series.next());
      } while (cusum.sum() < threshold && runs < kMostRuns);
    }
    out.push_back(std::log(runs / alarms));
  }
  return out;
}

}  // namespace gpuhealth::canary::simulation
