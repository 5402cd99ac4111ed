// SPDX-License-Identifier: Apache-2.0
#include "telemetry/parse.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::telemetry {
namespace {

using namespace std::string_view_literals;

TEST(Integer, TakesWhatTheKernelPrints) {
  EXPECT_EQ(parse_integer("48000\n"), 48000);
  EXPECT_EQ(parse_integer("-273150\n"), -273150);
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("8573157376\n"), 8573157376);
}

TEST(Integer, IgnoresTheNulsOfASavedFile) {
  EXPECT_EQ(parse_integer("289000000\n\0\0\0\0"sv), 289000000);
}

TEST(Integer, RefusesWhatIsNoNumber) {
  for (const auto text : {"", "\n", "N/A", "12 W", "0x10", "1.5", "99999999999999999999", "--1", "+"}) {
    EXPECT_FALSE(parse_integer(text)) << '"' << text << '"';
  }
}

TEST(Hex, TakesIdsWithAndWithoutPrefix) {
  EXPECT_EQ(parse_hex("0x744c\n"), 0x744cu);
  EXPECT_EQ(parse_hex("946d"), 0x946du);
  EXPECT_FALSE(parse_hex("0x"));
  EXPECT_FALSE(parse_hex("0x1ffffffff"));
}

TEST(LinkSpeed, TakesBothSpellingsOfTheKernel) {
  EXPECT_EQ(parse_link_speed("16.0 GT/s PCIe\n"), 16.0);
  EXPECT_EQ(parse_link_speed("2.5 GT/s PCIe"), 2.5);
  EXPECT_EQ(parse_link_speed("5 GT/s"), 5.0);
}

TEST(LinkSpeed, UnknownIsNoSpeed) {
  EXPECT_FALSE(parse_link_speed("Unknown\n"));
  EXPECT_FALSE(parse_link_speed("Unknown speed\n"));
  EXPECT_FALSE(parse_link_speed(""));
  EXPECT_FALSE(parse_link_speed("16.0 MT/s"));
}

TEST(DpmTable, PolarisHasManyLevelsAndOneStar) {
  const auto dpm = summarise_dpm("0: 300Mhz \n1: 600Mhz \n2: 900Mhz *\n3: 1145Mhz \n");
  ASSERT_TRUE(dpm);
  EXPECT_EQ(dpm->lowest, 300);
  EXPECT_EQ(dpm->highest, 1145);
  EXPECT_EQ(dpm->current, 900);
}

TEST(DpmTable, Rdna3ShowsTheClockBetweenLowestAndHighest) {
  const auto dpm = summarise_dpm("0: 500Mhz\n1: 31Mhz *\n2: 2219Mhz\n");
  ASSERT_TRUE(dpm);
  EXPECT_EQ(dpm->lowest, 500);
  EXPECT_EQ(dpm->highest, 2219);
  EXPECT_EQ(dpm->current, 31);
}

TEST(DpmTable, DeepSleepHasALineOfItsOwn) {
  const auto table = parse_dpm_table("S: 19Mhz *\n0: 500Mhz\n1: 2100Mhz\n");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->levels.size(), 3u);
  EXPECT_TRUE(table->levels[0].deep_sleep);
  EXPECT_TRUE(table->levels[0].current);
  EXPECT_EQ(table->levels[2].mhz, 2100);
}

TEST(DpmTable, TheDeepSleepClockIsNoLevel) {
  const auto dpm = summarise_dpm("S: 19Mhz *\n0: 500Mhz\n1: 2100Mhz\n");
  ASSERT_TRUE(dpm);
  EXPECT_EQ(dpm->current, 19);
  EXPECT_EQ(dpm->lowest, 500);
  EXPECT_EQ(dpm->highest, 2100);
}

TEST(DpmTable, NoStarMeansNoCurrentLevel) {
  const auto dpm = summarise_dpm("0: 300Mhz \n1: 1900Mhz \n");
  ASSERT_TRUE(dpm);
  EXPECT_FALSE(dpm->current);
}

TEST(DpmTable, AnEmptyTableOrAnotherFormatIsNone) {
  EXPECT_FALSE(summarise_dpm("0: 0Mhz *\n1: 0Mhz *\n"));
  EXPECT_FALSE(summarise_dpm("\n"));
  EXPECT_FALSE(summarise_dpm(""));
  EXPECT_FALSE(summarise_dpm("0: 2.5GT/s, x8 \n1: 8.0GT/s, x16 *\n"));
  EXPECT_FALSE(parse_dpm_table("OD_SCLK:\n0: 300MHz\n"));
}

TEST(Aer, TheTotalLineCounts) {
  EXPECT_EQ(parse_aer_total("RxErr 2\nBadTLP 1\nBadDLLP 0\nTOTAL_ERR_COR 2\n"), 2u);
  EXPECT_EQ(parse_aer_total("Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 1\n"), 1u);
}

TEST(Aer, WithoutATotalTheNamedErrorsAreSummed) {
  EXPECT_EQ(parse_aer_total("RxErr 2\nBadTLP 5\n"), 7u);
}

TEST(Aer, NamesOfTheAbiDocumentAndUnnamedBitsAreTaken) {
  const auto counters = parse_aer("Receiver Error 3\ncor_bit[10] 4\nTOTAL_ERR_COR 7\n");
  ASSERT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters[0].first, "Receiver Error");
  EXPECT_EQ(counters[0].second, 3u);
  EXPECT_EQ(counters[1].first, "cor_bit[10]");
}

TEST(Aer, OtherTextIsNone) {
  EXPECT_FALSE(parse_aer_total(""));
  EXPECT_FALSE(parse_aer_total("RxErr many\n"));
}

TEST(Ras, TwoAndThreeLinesInAnyOrder) {
  const auto two = parse_ras_counts("ue: 1\nce: 14\n");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->uncorrectable, 1u);
  EXPECT_EQ(two->correctable, 14u);
  EXPECT_FALSE(two->deferred);
  const auto three = parse_ras_counts("ue: 0\nce: 0\nde: 3\n");
  ASSERT_TRUE(three);
  EXPECT_EQ(three->deferred, 3u);
}

TEST(Ras, InaccessibleIsNotZero) {
  EXPECT_FALSE(parse_ras_counts("Query currently inaccessible\n"));
  EXPECT_FALSE(parse_ras_counts(""));
}

TEST(PowerProfile, RowsColumnsAndDetachedStars) {
  EXPECT_EQ(
      parse_power_profile("NUM        MODE_NAME BUSY_SET_POINT\n  0 BOOTUP_DEFAULT*:   70\n  1 3D_FULL_SCREEN :  70\n"),
      "BOOTUP_DEFAULT");
  EXPECT_EQ(parse_power_profile("NUM  MODE_NAME\n  0   BOOTUP_DEFAULT:  -\n  1 3D_FULL_SCREEN *:   0   100\n"),
            "3D_FULL_SCREEN");
  EXPECT_EQ(parse_power_profile(
                "   0 BOOTUP_DEFAULT  1 3D_FULL_SCREEN  4 VR            * 5 COMPUTE         \nGfx_FPS  0  0\n"),
            "VR");
  EXPECT_EQ(parse_power_profile(" 1 3D_FULL_SCREEN \n 3          VIDEO*\n"), "VIDEO");
  EXPECT_FALSE(parse_power_profile(" 0 BOOTUP_DEFAULT :\n"));
  EXPECT_FALSE(parse_power_profile("*\n"));
}

TEST(RuntimeStatus, OnlySuspendedAndOnTheWayAreAsleep) {
  EXPECT_EQ(parse_runtime_status("active\n"), PowerState::Active);
  EXPECT_EQ(parse_runtime_status("unsupported\n"), PowerState::Active);
  EXPECT_EQ(parse_runtime_status("suspended\n"), PowerState::Suspended);
  EXPECT_EQ(parse_runtime_status("suspending\n"), PowerState::Suspending);
  EXPECT_EQ(parse_runtime_status("resuming\n"), PowerState::Resuming);
  EXPECT_EQ(parse_runtime_status("?"), PowerState::Unknown);
}

TEST(Parse, WordsThatCFunctionsTakeForNumbersAreNone) {
  EXPECT_FALSE(parse_dpm_table("0: nanMhz *"));
  EXPECT_FALSE(summarise_dpm("0: infMhz *"));
  EXPECT_FALSE(parse_link_speed("inf GT/s"));
}

}  // namespace
}  // namespace gpuhealth::telemetry
