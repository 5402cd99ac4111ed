// SPDX-License-Identifier: Apache-2.0
#include "telemetry/throttle_map.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "telemetry/gpu_metrics.hpp"
#include "tests/telemetry/decoder_support.hpp"

namespace gpuhealth::telemetry {
namespace {

ThrottleSet set_of(std::initializer_list<ThrottleReason> reasons) {
  ThrottleSet out;
  for (const auto r : reasons) out.insert(r);
  return out;
}

// With both second signs present: hot and at the cap.
ThrottleInput pressed(AsicFamily family) {
  ThrottleInput in;
  in.family = family;
  in.junction_celsius = 110;
  in.junction_critical_celsius = 110;
  in.power_watt = 300;
  in.power_cap_watt = 300;
  return in;
}

TEST(ThrottleMap, Navi31IdleHotspotBitIsNotThrottling) {
  ThrottleInput in;  // smi-text/navi31-gpumetrics-decoded-temp_hotspot: 41 C, limit 110 C
  in.family = AsicFamily::Navi3x;
  in.asic_status = 1U << 1;
  in.indep_status = std::uint64_t{1} << 36;
  in.junction_celsius = 41;
  in.junction_critical_celsius = 110;
  const auto out = decode_throttle(in);
  EXPECT_TRUE(out.known);
  EXPECT_TRUE(out.believed.empty());
  EXPECT_EQ(out.gated, set_of({ThrottleReason::TempHotspot}));
}

TEST(ThrottleMap, IdleNavi33OfTheCapturesThrottlesNothing) {
  CAPTURES_OR_RETURN(dir);
  const auto bytes = read_bytes(dir / "sysfs/lact-rx7600s/card1/device/gpu_metrics");
  const MetricsView view(bytes);
  ThrottleInput in;
  in.family = AsicFamily::Navi3x;
  in.asic_status = view.raw(MetricsKey::ThrottleStatus);
  in.indep_status = view.raw(MetricsKey::IndepThrottleStatus);
  in.junction_celsius = 54;  // hwmon of the same capture: 54 C, limit 100 C
  in.junction_critical_celsius = 100;
  const auto out = decode_throttle(in);
  EXPECT_TRUE(out.believed.empty());
  EXPECT_EQ(out.gated, set_of({ThrottleReason::TempHotspot}));
}

TEST(ThrottleMap, HotspotBitNearTheLimitIsBelieved) {
  for (const auto family : {AsicFamily::Navi3x, AsicFamily::Navi4x}) {
    ThrottleInput in;
    in.family = family;
    in.asic_status = 1U << 1;
    in.junction_critical_celsius = 110;
    in.junction_celsius = 105;
    EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::TempHotspot}));
    in.junction_celsius = 104;
    EXPECT_TRUE(decode_throttle(in).believed.empty());
    EXPECT_EQ(decode_throttle(in).gated, set_of({ThrottleReason::TempHotspot}));
  }
}

TEST(ThrottleMap, HotspotBitWithoutATemperatureIsNotBelieved) {
  ThrottleInput in;
  in.family = AsicFamily::Navi4x;
  in.asic_status = 1U << 1;
  EXPECT_TRUE(decode_throttle(in).believed.empty());
  in.junction_celsius = 109;  // of what limit?
  EXPECT_TRUE(decode_throttle(in).believed.empty());
}

TEST(ThrottleMap, HotspotBitOfOtherFamiliesNeedsNoSecondSign) {
  ThrottleInput in;
  in.family = AsicFamily::Navi2x;
  in.asic_status = 1U << 2;
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::TempHotspot}));
}

TEST(ThrottleMap, PowerBitsOfNavi2xAreBelievedOnlyNearTheCap) {
  ThrottleInput in;
  in.family = AsicFamily::Navi2x;
  in.asic_status = 1U << 13 | 1U << 11;  // PPT0, TDC_GFX
  in.power_watt = 36;
  in.power_cap_watt = 289;
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::TdcGfx}));
  EXPECT_EQ(decode_throttle(in).gated, set_of({ThrottleReason::Ppt0}));
  in.power_watt = 260.1;  // 90 % of 289 W
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::Ppt0, ThrottleReason::TdcGfx}));
  in.power_cap_watt.reset();
  EXPECT_FALSE(decode_throttle(in).believed.contains(ThrottleReason::Ppt0));
}

TEST(ThrottleMap, PowerBitOfNavi3xNeedsNoCap) {
  ThrottleInput in;
  in.family = AsicFamily::Navi3x;
  in.asic_status = 1U << 16;
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::Ppt0}));
}

TEST(ThrottleMap, AliasedPpt0OfTheIndependentMaskIsNotBelieved) {
  for (const auto family : {AsicFamily::Navi2x, AsicFamily::Navi3x, AsicFamily::Navi4x}) {
    auto in = pressed(family);
    in.indep_status = 1;
    EXPECT_TRUE(decode_throttle(in).known);
    EXPECT_TRUE(decode_throttle(in).believed.empty());
    EXPECT_EQ(decode_throttle(in).gated, set_of({ThrottleReason::Ppt0}));
  }
}

TEST(ThrottleMap, AsicMaskNamesWhatTheIndependentMaskMixesUp) {
  auto in = pressed(AsicFamily::Navi3x);
  in.asic_status = 1U << 12;  // TEMP_PLX, which has no independent bit and shows as PPT0 there
  in.indep_status = 1;
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::TempPlx}));
  EXPECT_TRUE(decode_throttle(in).gated.empty());
}

TEST(ThrottleMap, FamilyWithoutATableFallsBackToTheIndependentMask) {
  ThrottleInput in;
  in.family = AsicFamily::Unknown;
  in.asic_status = 0xFF;
  EXPECT_FALSE(decode_throttle(in).known);
  in.indep_status = std::uint64_t{1} << 35 | 1U << 0;
  EXPECT_TRUE(decode_throttle(in).known);
  EXPECT_EQ(decode_throttle(in).believed, set_of({ThrottleReason::TempEdge, ThrottleReason::Ppt0}));
}

TEST(ThrottleMap, Mi300SaysNothingInItsMetrics) {
  for (const auto family : {AsicFamily::Mi300, AsicFamily::Mi350}) {
    ThrottleInput in;
    in.family = family;
    in.asic_status = 0;
    in.indep_status = 0;
    EXPECT_FALSE(decode_throttle(in).known);
    EXPECT_TRUE(decode_throttle(in).believed.empty());
  }
}

TEST(ThrottleMap, NoMaskIsUnknownAndZeroIsNothing) {
  ThrottleInput in;
  in.family = AsicFamily::Navi3x;
  EXPECT_FALSE(decode_throttle(in).known);
  in.asic_status = 0;
  EXPECT_TRUE(decode_throttle(in).known);
  EXPECT_TRUE(decode_throttle(in).believed.empty());
}

// MangoHud calls it power-throttled and nothing else.
TEST(ThrottleMap, MangoHudsApuIsAtItsPackageLimits) {
  CAPTURES_OR_RETURN(dir);
  const auto bytes = read_bytes(dir / "gpu_metrics/mangohud-apu-v2.2/gpu_metrics");
  const MetricsView view(bytes);
  ThrottleInput in;
  in.family = AsicFamily::ApuVangogh;
  in.asic_status = view.raw(MetricsKey::ThrottleStatus);
  in.indep_status = view.raw(MetricsKey::IndepThrottleStatus);
  const auto expected = set_of({ThrottleReason::Fppt, ThrottleReason::Sppt});
  EXPECT_EQ(decode_throttle(in).believed, expected);
  in.asic_status.reset();
  EXPECT_EQ(decode_throttle(in).believed, expected) << "both masks of the file say the same";
}

TEST(ThrottleMap, BitsWithoutAMeaningAreNothing) {
  auto in = pressed(AsicFamily::Aldebaran);
  in.asic_status = 1U << 5 | 1U << 31;
  EXPECT_TRUE(decode_throttle(in).known);
  EXPECT_TRUE(decode_throttle(in).believed.empty());
}

TEST(ThrottleMap, EveryBitIsAsInTheReference) {
  CAPTURES_OR_RETURN(captures);
  std::ifstream file(captures.parent_path() / "reference" / "gpu_metrics_layouts.json");
  const auto meta = nlohmann::json::parse(file)["_meta"];
  const std::map<std::string, std::vector<AsicFamily>> families = {
      {"navi1x (MP1 11.0.0/11.0.5/11.0.9)", {AsicFamily::Navi1x}},
      {"navi2x (MP1 11.0.7/11/12/13)", {AsicFamily::Navi2x}},
      {"arcturus (MI100)", {AsicFamily::Arcturus}},
      {"aldebaran (MI200)", {AsicFamily::Aldebaran}},
      {"navi3x (MP1 13.0.0/13.0.7/13.0.10)", {AsicFamily::Navi3x}},
      {"navi4x (MP1 14.0.2/14.0.3)", {AsicFamily::Navi4x}},
      {"apu renoir/yellow_carp/13.0.4/13.0.5", {AsicFamily::ApuRenoir, AsicFamily::ApuRdna2, AsicFamily::ApuRdna3}},
      {"apu vangogh", {AsicFamily::ApuVangogh}},
  };
  for (const auto& [key, list] : families) {
    ASSERT_TRUE(meta["asic_throttle_bits"].contains(key)) << key;
    for (const auto family : list) {
      for (unsigned bit = 0; bit < 32; ++bit) {
        auto in = pressed(family);
        in.asic_status = std::uint64_t{1} << bit;
        const auto name = meta["asic_throttle_bits"][key].value(std::to_string(bit), std::string());
        const auto expected = name.empty() ? ThrottleSet() : set_of({throttle_reason_from(name).value()});
        EXPECT_EQ(decode_throttle(in).believed, expected) << key << " bit " << bit;
      }
    }
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    ThrottleInput in;
    in.indep_status = std::uint64_t{1} << bit;
    const auto name = meta["indep_throttle_bits"].value(std::to_string(bit), std::string());
    EXPECT_EQ(decode_throttle(in).believed, name.empty() ? ThrottleSet() : set_of({throttle_reason_from(name).value()}))
        << bit;
  }
}

}  // namespace
}  // namespace gpuhealth::telemetry
