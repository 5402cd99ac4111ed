// SPDX-License-Identifier: Apache-2.0
#include "health/windows.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;

SteadyTime at(Duration d) {
  return SteadyTime{} + d;
}

TEST(ShareWindow, SaysNothingBeforeHalfOfItIsSeen) {
  ShareWindow window;
  for (int s = 0; s <= 28; s += 2) window.add(100, at(std::chrono::seconds(s)), 60s);
  EXPECT_FALSE(window.share(60s));
  window.add(100, at(30s), 60s);
  EXPECT_EQ(window.share(60s), 100);
}

TEST(ShareWindow, WeighsByTime) {
  ShareWindow window;
  window.add(0, at(0s), 60s);
  for (int s = 1; s <= 20; ++s) window.add(100, at(std::chrono::seconds(s)), 60s);
  window.add(0, at(50s), 60s);
  EXPECT_EQ(window.share(60s), 40);  // 20 s of 100, 30 s of 0
  EXPECT_EQ(window.covered(), 50s);
}

TEST(ShareWindow, OfSlowSamplesThirtyAreKept) {
  ShareWindow window;
  window.add(0, at(0s), 60s);
  for (int n = 1; n <= 40; ++n) window.add(n == 40 ? 100 : 0, at(std::chrono::seconds(20 * n)), 60s);
  EXPECT_EQ(window.covered(), 600s);
  EXPECT_NEAR(window.share(60s).value_or(0), 3.33, 0.01);
}

TEST(ShareWindow, ForgetsWhatIsOlderThanItself) {
  ShareWindow window;
  for (int s = 0; s <= 60; s += 2) window.add(100, at(std::chrono::seconds(s)), 60s);
  for (int s = 62; s <= 120; s += 2) window.add(0, at(std::chrono::seconds(s)), 60s);
  EXPECT_EQ(window.share(60s), 0);
}

TEST(CounterWindow, CountsRisesOfTheLastHour) {
  CounterWindow window;
  window.add(1'000, at(0s));
  EXPECT_EQ(window.rise(), 0);
  window.add(1'010, at(30min));
  window.add(1'015, at(40min));
  EXPECT_EQ(window.rise(), 15);
  window.add(1'015, at(91min));
  EXPECT_EQ(window.rise(), 5);
  window.add(3, at(92min));
  window.add(4, at(93min));
  EXPECT_EQ(window.rise(), 6);
  window.add(4, at(300min));
  EXPECT_EQ(window.rise(), 0);
}

}  // namespace
}  // namespace gpuhealth::health
