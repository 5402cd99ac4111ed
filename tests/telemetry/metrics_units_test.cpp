// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics_units.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::telemetry {
namespace {

constexpr auto kNone = std::nullopt;

TEST(MetricsUnits, DiscreteCardsAreInWholeUnits) {
  for (const auto key :
       {MetricsKey::TemperatureHotspot, MetricsKey::AverageGfxActivity, MetricsKey::AverageSocketPower,
        MetricsKey::CurrSocketPower, MetricsKey::CurrentGfxclk, MetricsKey::VoltageGfx, MetricsKey::CurrentFanSpeed})
    EXPECT_EQ(metrics_scale(key, 1, 3, AsicFamily::Navi3x), 1.0);
}

TEST(MetricsUnits, PhoenixIsInCentiDegreesAndMilliwatts) {
  EXPECT_DOUBLE_EQ(2500 * metrics_scale(MetricsKey::TemperatureGfx, 2, 1, AsicFamily::ApuRdna3), 25.0);
  EXPECT_DOUBLE_EQ(3401 * metrics_scale(MetricsKey::AverageSocketPower, 2, 1, AsicFamily::ApuRdna3), 3.401);
  EXPECT_DOUBLE_EQ(79 * metrics_scale(MetricsKey::AverageGfxActivity, 2, 1, AsicFamily::ApuRdna3), 0.79);
  EXPECT_EQ(metrics_scale(MetricsKey::AverageGfxclk, 2, 1, AsicFamily::ApuRdna3), 1.0);
}

// MangoHud reads 100 % of this file, and the driver does not divide Van Gogh's activity.
TEST(MetricsUnits, VanGoghsActivityIsInPercent) {
  EXPECT_EQ(metrics_scale(MetricsKey::AverageGfxActivity, 2, 2, AsicFamily::ApuVangogh), 1.0);
  EXPECT_DOUBLE_EQ(18844 * metrics_scale(MetricsKey::AverageSocketPower, 2, 2, AsicFamily::ApuVangogh), 18.844);
}

TEST(MetricsUnits, RenoirsSocketPowerIsInWatts) {
  EXPECT_EQ(metrics_scale(MetricsKey::AverageSocketPower, 2, 2, AsicFamily::ApuRenoir), 1.0);
  EXPECT_EQ(metrics_scale(MetricsKey::AverageSocketPower, 2, 4, AsicFamily::ApuRenoir), 0.001);
  EXPECT_EQ(metrics_scale(MetricsKey::TemperatureGfx, 2, 2, AsicFamily::ApuRenoir), 0.01);
}

TEST(MetricsUnits, Strix) {
  EXPECT_EQ(metrics_scale(MetricsKey::TemperatureSkin, 3, 0, AsicFamily::ApuRdna3), 0.01);
  EXPECT_EQ(metrics_scale(MetricsKey::AverageSocketPower, 3, 0, AsicFamily::ApuRdna3), 0.001);
}

TEST(LinkSpeed, TenthsOfGigatransfers) {
  EXPECT_EQ(link_speed_gts(160, AsicFamily::Navi2x), 16.0);
  EXPECT_EQ(link_speed_gts(80, AsicFamily::Navi3x), 8.0);
  EXPECT_EQ(link_speed_gts(320, AsicFamily::Mi300), 32.0);
  EXPECT_EQ(link_speed_gts(640, AsicFamily::Mi350), 64.0);
  EXPECT_EQ(link_speed_gts(25, AsicFamily::Navi2x), 2.5);
}

TEST(LinkSpeed, SmallNumbersAreGenerations) {
  EXPECT_EQ(link_speed_gts(1, AsicFamily::Navi3x), 2.5);
  EXPECT_EQ(link_speed_gts(3, AsicFamily::Navi3x), 8.0);
  EXPECT_EQ(link_speed_gts(4, AsicFamily::Navi3x), 16.0);
  EXPECT_EQ(link_speed_gts(6, AsicFamily::Unknown), 64.0);
}

TEST(LinkSpeed, ClampedGen5IsDoubted) {
  EXPECT_EQ(link_speed_gts(25, AsicFamily::Navi4x), kNone);
  EXPECT_EQ(link_speed_gts(25, AsicFamily::Navi3x), kNone);
  EXPECT_EQ(link_speed_gts(50, AsicFamily::Navi4x), 5.0);
}

TEST(LinkSpeed, WhatNoLinkHasIsNone) {
  for (const std::uint64_t raw : {0ULL, 7ULL, 100ULL, 65535ULL})
    EXPECT_EQ(link_speed_gts(raw, AsicFamily::Navi2x), kNone) << raw;
}

}  // namespace
}  // namespace gpuhealth::telemetry
