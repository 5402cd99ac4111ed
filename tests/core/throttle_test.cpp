// SPDX-License-Identifier: Apache-2.0
#include "core/throttle.hpp"

#include <gtest/gtest.h>

namespace gpuhealth {
namespace {

TEST(ThrottleSet, HoldsWhatWasPutInAndNothingElse) {
  ThrottleSet set;
  EXPECT_TRUE(set.empty());
  set.insert(ThrottleReason::TempHotspot);
  set.insert(ThrottleReason::Ppt0);
  EXPECT_TRUE(set.contains(ThrottleReason::TempHotspot));
  EXPECT_FALSE(set.contains(ThrottleReason::TempEdge));
  set.erase(ThrottleReason::Ppt0);
  EXPECT_FALSE(set.contains(ThrottleReason::Ppt0));
}

TEST(ThrottleSet, KindsSeparateHeatFromPower) {
  ThrottleSet set;
  set.insert(ThrottleReason::TempVrMem0);
  set.insert(ThrottleReason::Fppt);
  set.insert(ThrottleReason::TdcGfx);
  EXPECT_TRUE(set.of_kind(ThrottleKind::Thermal).contains(ThrottleReason::TempVrMem0));
  EXPECT_FALSE(set.of_kind(ThrottleKind::Thermal).contains(ThrottleReason::Fppt));
  EXPECT_TRUE(set.of_kind(ThrottleKind::Power).contains(ThrottleReason::Fppt));
  EXPECT_TRUE(set.of_kind(ThrottleKind::Current).contains(ThrottleReason::TdcGfx));
}

TEST(ThrottleReason, DriverNamesAreFound) {
  EXPECT_EQ(throttle_reason_from("TEMP_HOTSPOT"), ThrottleReason::TempHotspot);
  EXPECT_EQ(throttle_reason_from("SPPT_APU"), ThrottleReason::SpptApu);
  EXPECT_EQ(throttle_reason_from("GFX_DVO"), ThrottleReason::GfxDvo);
  EXPECT_FALSE(throttle_reason_from("TEMP_"));
}

}  // namespace
}  // namespace gpuhealth
