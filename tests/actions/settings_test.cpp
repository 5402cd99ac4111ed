// SPDX-License-Identifier: Apache-2.0
// Performance level, power profile, clocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/profile_table.hpp"
#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string level_file(const TestMachine& m) {
  return m.device() + "/power_dpm_force_performance_level";
}

TEST(Performance, LevelAndProfileDoNotStandOnEachOther) {
  TestMachine m;
  const auto level = m.run(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_TRUE(level) << level.error().text;
  const auto refused = m.run(ActionKind::PowerProfile, {{"profile", "COMPUTE"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find(level->ledger + " is in force on this GPU, and both set its performance level"),
            std::string::npos)
      << refused.error().text;
  ASSERT_TRUE(revert(m.machine(), level->ledger, true));
  EXPECT_TRUE(m.run(ActionKind::PowerProfile, {{"profile", "COMPUTE"}}));
}

TEST(PerformanceLevel, WritesTheLevelOnceAndBringsTheOldOneBack) {
  TestMachine m;
  const auto done = m.run(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_TRUE(done) << done.error().text;
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_THAT(m.system.writes, ElementsAre(level_file(m) + " low", level_file(m) + " auto"));
  EXPECT_EQ(m.read(level_file(m)), "auto");
}

TEST(PerformanceLevel, OnlyTheThreeThatAreSafe) {
  TestMachine m;
  for (const char* level : {"manual", "profile_peak", "LOW", ""})
    EXPECT_FALSE(m.run(ActionKind::PerformanceLevel, {{"level", level}})) << level;
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_THAT(m.ledger(), IsEmpty());
}

TEST(PerformanceLevel, ClocksSetByHandAreNoRulesToLose) {
  TestMachine m;
  m.write(level_file(m), "manual\n");
  const auto refused = m.run_by_rule(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("somebody has set clocks by hand"));
  const auto person = m.run(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_TRUE(person);
  EXPECT_THAT(person->warnings, testing::Contains(HasSubstr("are lost")));
}

TEST(PerformanceLevel, ADriverThatTakesNoneIsReported) {  // MI300
  TestMachine m;
  m.system.faults["performance_level"] = {.error = EINVAL};
  const auto refused = m.run(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("Invalid argument"));
  EXPECT_EQ(m.last().state, "reverted");
}

TEST(PerformanceLevel, ALevelThatDoesNotComeBackIsSaid) {  // low, and auto has no effect until a reboot
  TestMachine m;
  const auto done = m.run(ActionKind::PerformanceLevel, {{"level", "low"}});
  ASSERT_TRUE(done);
  m.system.faults["performance_level"] = {.no_effect = true};
  const auto back = revert(m.machine(), done->ledger, true);
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().text, HasSubstr("auto could not be brought back: it is low now"));
  EXPECT_EQ(m.last().state, "failed-to-revert");
}

TEST(PowerProfile, SetsManualThenTheProfileAndBringsBackBothInReverse) {
  TestMachine m;
  const std::string file = m.device() + "/pp_power_profile_mode";
  const auto done = m.run(ActionKind::PowerProfile, {{"profile", "COMPUTE"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->after, "COMPUTE under manual");
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_THAT(m.system.writes,
              ElementsAre(level_file(m) + " manual", file + " 5", file + " 0", level_file(m) + " auto"));
}

TEST(PowerProfile, AFailureInTheMiddleBringsBackTheLevel) {
  TestMachine m;
  m.system.faults["pp_power_profile_mode"] = {.error = EINVAL, .only_call = 1};
  ASSERT_FALSE(m.run(ActionKind::PowerProfile, {{"profile", "COMPUTE"}}));
  EXPECT_EQ(m.last().state, "reverted");
  EXPECT_EQ(m.read(level_file(m)), "auto");
}

TEST(PowerProfile, AnUnknownOneIsRefusedWithThoseThatThereAre) {
  TestMachine m;
  const auto refused = m.run(ActionKind::PowerProfile, {{"profile", "VR"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("it has BOOTUP_DEFAULT, 3D_FULL_SCREEN, COMPUTE"));
}

TEST(ProfileTable, ReadsTheFormsOfAllGenerations) {
  // Vega: columns behind the name.
  auto vega = parse_profiles(
      "NUM        MODE_NAME BUSY_SET_POINT FPS USE_RLC_BUSY MIN_ACTIVE_LEVEL\n"
      "  0 BOOTUP_DEFAULT :             70  60          0              0\n"
      "  1 3D_FULL_SCREEN*:             70  60          1              3\n"
      "  6         CUSTOM :              0   0          0              0\n");
  ASSERT_EQ(vega.size(), 3U);
  EXPECT_EQ(vega[1].name, "3D_FULL_SCREEN");
  EXPECT_TRUE(vega[1].active);
  EXPECT_FALSE(vega[0].active);
  // APUs: the name alone.
  auto apu = parse_profiles(" 0 BOOTUP_DEFAULT \n 3          VIDEO*\n");
  ASSERT_EQ(apu.size(), 2U);
  EXPECT_EQ(apu[1].number, 3);
  EXPECT_TRUE(apu[1].active);
  EXPECT_THAT(parse_profiles(""), IsEmpty());
  EXPECT_THAT(parse_profiles("0( GFXCLK) 0 1\n 7\n-1 COMPUTE\n"), IsEmpty());
}

TEST(ClockCap, SetsTheHighestLevelAndCommitsOnce) {
  TestMachine m;
  const std::string file = m.device() + "/pp_od_clk_voltage";
  m.write(file, "OD_SCLK:\n0: 500Mhz\n1: 2526Mhz\nOD_MCLK:\n1: 1249MHz\nOD_RANGE:\nSCLK:     500Mhz       3000Mhz\n");
  const auto done = m.run(ActionKind::ClockCap, {{"mhz", "2000"}});
  ASSERT_TRUE(done) << done.error().text;
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_THAT(m.system.writes, ElementsAre(file + " s 1 2000", file + " c", file + " s 1 2526", file + " c"));
  const auto low = m.run(ActionKind::ClockCap, {{"mhz", "100"}});
  ASSERT_TRUE(low);
  EXPECT_EQ(low->after, "1500 MHz");  // half of what the driver allows
}

TEST(ClockCap, WithoutOverdriveItIsUnsupportedAndSaysSo) {
  TestMachine m;
  const auto refused = m.run(ActionKind::ClockCap, {{"mhz", "2000"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
  EXPECT_THAT(refused.error().text, HasSubstr("overdrive is off"));
  m.write(m.device() + "/pp_od_clk_voltage",
          "OD_SCLK_OFFSET:\n0Mhz\nOD_RANGE:\nSCLK_OFFSET:    -500Mhz       1000Mhz\n");
  EXPECT_THAT(m.run(ActionKind::ClockCap, {{"mhz", "2000"}}).error().text, HasSubstr("offsets alone"));
}

}  // namespace
}  // namespace gpuhealth::actions
