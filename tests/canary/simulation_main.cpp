// SPDX-License-Identifier: Apache-2.0
// usage: canary-simulation [SCALE]   prints the tables of docs/detection.md; SCALE 1 takes minutes, 0.05 seconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "simulation.hpp"

namespace {

using namespace gpuhealth::canary;
using namespace gpuhealth::canary::simulation;

int scaled(double scale, int count, int least) {
  return std::max(least, static_cast<int>(scale * count));
}

void false_alarms(double scale) {
  const int years = scaled(scale, 400, 5);
  std::printf("No fault, five-minute cadence, a reboot a month; alarms a series-year (%d years each)\n", years);
  for (const double sigma : {0.005, 0.01, 0.02, 0.03, 0.05}) {
    const auto a = no_fault(sigma, years, 9000);
    std::printf("  sigma %.1f%%: confirmed %.4f, suspect %.4f\n", sigma * 100, a.confirmed_a_year, a.suspect_a_year);
  }
}

void delays(double scale) {
  const int count = scaled(scale, 2000, 100);
  std::puts("Drift: runs to the alarm, median / p95");
  for (const double sigma : {0.01, 0.03, 0.05}) {
    for (const double factor : {1.05, 1.1, 1.25, 2.0, 42.0}) {
      const auto d = drift_delay(sigma, factor, count, 500);
      std::printf("  sigma %.0f%% %5.2fx: %.0f / %.0f, missed in a week %.1f%%\n", sigma * 100, factor, d.median_runs,
                  d.p95_runs, d.missed * 100);
    }
  }
  std::puts("Collapse: minutes from the fault, median (p95)");
  for (const double idle : {1.0, 0.79, 0.35}) {
    for (const double factor : {1.6, 2.0, 10.0, 42.0}) {
      const auto s = collapse_minutes(0.01, factor, idle, stats::Level::Suspect, count, 600);
      const auto c = collapse_minutes(0.01, factor, idle, stats::Level::Confirmed, count, 600);
      std::printf("  idle %3.0f%% %4.1fx: suspect %.1f (%.0f), confirmed %.1f (%.0f), missed in two days %.1f%%\n",
                  idle * 100, factor, s.median_runs, s.p95_runs, c.median_runs, c.p95_runs, c.missed * 100);
    }
  }
}

void transitions(double scale) {
  const int count = scaled(scale, 20000, 200);
  std::printf("New epoch on one machine (%d each): slower / same / undecided, runs median / p95\n", count);
  for (const double sigma : {0.01, 0.03}) {
    for (const double factor : {1.0, 1.03, 1.05, 1.07, 1.1, 1.25, 2.0}) {
      const auto t = epoch_change(sigma, factor, count, 31000);
      std::printf("  sigma %.0f%% %.2fx: %.3f%% / %.2f%% / %.2f%%, %.0f / %.0f\n", sigma * 100, factor, t.slower * 100,
                  t.same * 100, t.undecided * 100, t.median_runs, t.p95_runs);
    }
  }
  std::puts("Fleet: share called slower");
  for (const int n : {3, 5, 10, 20, 50, 200}) {
    std::printf("  n=%3d:", n);
    for (const double factor : {1.0, 1.01, 1.02, 1.03, 1.05, 1.10})
      std::printf("  %.2fx %.4f%%", factor,
                  100 * fleet(n, factor, scaled(scale, factor == 1.0 ? 200000 : 5000, 200), 77));
    std::puts("");
  }
}

void leaks(double scale) {
  std::puts("Neighbours that the gate misses: a year, suspect / collapse / drift");
  for (const double leak : {0.0, 0.001, 0.01, 0.05}) {
    const auto l = contention(leak, scaled(scale, 100, 5), 42);
    std::printf("  leak %.1f%%: %.2f / %.2f / %.2f\n", leak * 100, l.suspect, l.collapse, l.drift);
  }
}

void exponent(double scale) {
  std::puts("ln(runs between false alarms) at weaker thresholds; the slope carries to the one in use");
  for (const double sigma : {0.02, 0.03, 0.05}) {
    const double use = stats::Cusum::parameters(sigma).threshold;
    const std::vector<double> at = {0.03 * use, 0.05 * use, 0.07 * use};
    const auto ln = log_run_length(sigma, at, scaled(scale, 200, 20), 5);
    const double slope = (ln[2] - ln[0]) / (at[2] - at[0]);
    const double there = ln[2] + slope * (use - at[2]);
    std::printf("  sigma %.0f%%: %.1f %.1f %.1f -> %.1f at H = %.2f: %.1e alarms a year\n", sigma * 100, ln[0], ln[1],
                ln[2], there, use, 105120 * std::exp(-there));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double scale = argc > 1 ? std::strtod(argv[1], nullptr) : 1;
  if (!(scale > 0)) {
    std::fputs("usage: canary-simulation [SCALE]\n", stderr);
    return 2;
  }
  delays(scale);
  transitions(scale);
  leaks(scale);
  exponent(scale);
  false_alarms(scale);
  return 0;
}
