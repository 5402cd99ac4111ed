// SPDX-License-Identifier: Apache-2.0
// Series of runs with noise as GPUs make it (correlated, heavy-tailed, with glitches, a daily wave and a step at each
// reboot), judged by the code that judges real ones. Feeds the tables of docs/detection.md.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "canary/stats/judge.hpp"

namespace gpuhealth::canary::simulation {

struct Noise {
  double sigma = 0.01;
  double boot_sigma = stats::kBootSigma;
  double glitches = 1e-3;  // share of runs that take 1.2 to 5 times as long for no lasting reason
};

class Series {
 public:
  Series(std::uint64_t seed, Noise noise);
  void reboot();
  double next();  // ln(time)

 private:
  std::mt19937_64 random_;
  Noise noise_;
  double correlated_ = 0, boot_ = 0, phase_ = 0;
  std::normal_distribution<double> normal_{0, 1};
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::student_t_distribution<double> heavy_{4};
};

struct FalseAlarms {
  double confirmed_a_year = 0;
  double suspect_a_year = 0;
};
// Five minutes apart, a reboot a month, nobody else on the GPU.
FalseAlarms no_fault(double sigma, int series_years, std::uint64_t seed);

struct Delay {
  double median_runs = 0, p95_runs = 0;
  double missed = 0;  // share, within a week of runs
};
Delay drift_delay(double sigma, double factor, int series, std::uint64_t seed);
// Minutes from the fault to `level` of a collapse, the usual cadence and then what the judge asks for; `idle`: share of
// time in which the GPU is free, in stretches of half an hour on average.
Delay collapse_minutes(double sigma, double factor, double idle, stats::Level level, int series, std::uint64_t seed);

struct Transition {
  double slower = 0, same = 0, undecided = 0;  // shares
  double median_runs = 0, p95_runs = 0;
};
Transition epoch_change(double sigma, double factor, int series, std::uint64_t seed);

// Share of fleets that are called slower.
double fleet(int machines, double factor, int trials, std::uint64_t seed);

// Alarms a year when the gate misses a share of the neighbours: six a day, half an hour on average and one in ten six
// hours, 1.05 to 3 times slower.
struct Leak {
  double suspect = 0, collapse = 0, drift = 0;
};
Leak contention(double leak, int series_years, std::uint64_t seed);

// ln(mean runs between false alarms) of a CUSUM at each threshold: straight lines confirm the exponent.
std::vector<double> log_run_length(double sigma, const std::vector<double>& thresholds, int alarms, std::uint64_t seed);

}  // namespace gpuhealth::canary::simulation
