// SPDX-License-Identifier: Apache-2.0
#include "health/load.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

TEST(Load, IdleMemoryActivityAtTheLowestMemoryClockIsScanOut) {
  auto sample = idle_desktop();
  set(sample, R::UtilizationMemory, 25);
  EXPECT_EQ(load_at_once(navi31(), sample, {}).sign, "");
  set(sample, R::ClockMemory, 1249);
  EXPECT_EQ(load_at_once(navi31(), sample, {}).sign, "memory activity 25 %");
}

TEST(Load, PowerAtTwoFifthsOfTheLimitIsASign) {
  auto sample = idle_desktop();
  set(sample, R::PowerAverage, 121);  // 40 % of 303 W is 121.2 W
  EXPECT_EQ(load_at_once(navi31(), sample, {}).sign, "");
  set(sample, R::PowerAverage, 122);
  EXPECT_EQ(load_at_once(navi31(), sample, {}).sign, "power 122 W");
}

TEST(Load, AnIdleCardWithFastDisplaysHasNoSign) {
  auto sample = idle_desktop();  // LACT capture of an RX 7900 XTX: 68 of 290 W at 3 %
  set(sample, R::PowerAverage, 68);
  set(sample, R::PowerCap, 290);
  set(sample, R::ClockMemory, 1249);
  set(sample, R::UtilizationMemory, 3);
  EXPECT_EQ(load_at_once(navi31(), sample, {}).sign, "");
}

TEST(Load, ABusyValueThatIsNoPercentageIsNotBelieved) {
  auto sample = idle_desktop();
  put_under_load(sample);
  set(sample, R::UtilizationGfx, 65535);
  EXPECT_FALSE(load_at_once(navi31(), sample, {}).busy);
  EXPECT_FALSE(load_at_once(navi31(), sample, {}).sustained);
}

}  // namespace
}  // namespace gpuhealth::health
