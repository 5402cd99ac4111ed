// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"

#include <gtest/gtest.h>

namespace gpuhealth {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, AdvancesBothTimesTogether) {
  ManualClock clock({wall_from_microseconds(1'000'000), {500}});
  clock.advance(2s);
  EXPECT_EQ(to_microseconds(clock.now().wall), 3'000'000);
  EXPECT_EQ(clock.now().steady.us, 2'000'500);
}

TEST(ManualClock, AStepOfTheWallClockDoesNotMoveSteadyTime) {
  ManualClock clock;
  clock.step_wall(-1h);
  EXPECT_EQ(clock.now().steady.us, 0);
}

TEST(SystemClock, SteadyTimeNeverGoesBack) {
  const SystemClock clock;
  const auto a = clock.now();
  const auto b = clock.now();
  EXPECT_GE(b.steady, a.steady);
  EXPECT_GT(a.wall, wall_from_microseconds(1'577'836'800'000'000)) << "before 2020";
}

TEST(ScaledClock, RunsSoManyTimesAsFast) {
  const ScaledClock fast(10);
  const auto outer_begin = SystemClock().now().steady;
  const auto first = fast.now();
  const auto inner_begin = SystemClock().now().steady;
  while (SystemClock().now().steady - inner_begin < std::chrono::milliseconds(5)) {
  }
  const auto inner_end = SystemClock().now().steady;
  const auto second = fast.now();
  const auto outer_end = SystemClock().now().steady;
  EXPECT_GE((second.steady - first.steady).count(), 10 * (inner_end - inner_begin).count() - 10);
  EXPECT_LE((second.steady - first.steady).count(), 10 * (outer_end - outer_begin).count() + 10);
  EXPECT_EQ(second.wall - first.wall, second.steady - first.steady);
}

}  // namespace
}  // namespace gpuhealth
