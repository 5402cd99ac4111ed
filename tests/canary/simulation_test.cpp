// SPDX-License-Identifier: Apache-2.0
// The short form of canary-simulation: bounds from canary research done with other code (docs/detection.md).
#include "simulation.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::canary::simulation {
namespace {

TEST(Simulation, WithoutAFaultNothingIsConfirmed) {
  for (const double sigma : {0.005, 0.01, 0.03}) EXPECT_EQ(no_fault(sigma, 3, 9000).confirmed_a_year, 0) << sigma;
}

TEST(Simulation, DriftIsFoundInTheRunsThatTheTableSays) {
  const auto ten = drift_delay(0.01, 1.10, 100, 500);
  EXPECT_GE(ten.median_runs, 14);
  EXPECT_LE(ten.median_runs, 20);
  EXPECT_EQ(ten.missed, 0);
  const auto quarter = drift_delay(0.01, 1.25, 100, 500);
  EXPECT_GE(quarter.median_runs, 9);
  EXPECT_LE(quarter.median_runs, 10);
}

TEST(Simulation, TwofoldIsConfirmedWithinElevenMinutesOfTheFaultOnAnIdleGpu) {
  // At most five until the next run, and five of quiet after it.
  const auto twice = collapse_minutes(0.01, 2.0, 1.0, stats::Level::Confirmed, 100, 600);
  EXPECT_EQ(twice.missed, 0);
  EXPECT_LE(twice.p95_runs, 11);
  EXPECT_LE(collapse_minutes(0.01, 42, 1.0, stats::Level::Confirmed, 100, 600).p95_runs, 9);
}

TEST(Simulation, ANewKernelIsJudgedInSixRuns) {
  const auto same = epoch_change(0.01, 1.0, 100, 31000);
  EXPECT_EQ(same.slower, 0);
  EXPECT_GE(same.same, 0.97);
  const auto slower = epoch_change(0.01, 1.10, 100, 31000);
  EXPECT_GE(slower.slower, 0.97);
  EXPECT_LE(slower.median_runs, 8);
}

TEST(Simulation, AFleetSeesThreePercent) {
  EXPECT_EQ(fleet(5, 1.0, 20000, 1), 0);
  EXPECT_GE(fleet(20, 1.03, 500, 1), 0.9);
}

TEST(Simulation, NeighboursThatTheGateMissesAreTheFalseAlarms) {
  EXPECT_EQ(contention(0, 3, 42).collapse, 0);
  EXPECT_GT(contention(0.05, 3, 42).collapse, 5);
}

}  // namespace
}  // namespace gpuhealth::canary::simulation
