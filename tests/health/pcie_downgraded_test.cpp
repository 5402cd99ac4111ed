// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kLink = ConditionType::PcieDowngraded;

Machine loaded() {
  Machine machine;
  put_under_load(machine.sample);
  return machine;
}

TEST(PcieDowngraded, FourLanesOfSixteenUnderLoadAreConfirmed) {
  auto machine = loaded();
  set(machine.sample, R::PcieWidth, 4);
  machine.run(24s);
  EXPECT_TRUE(machine.changes.empty());  // 20 s to settle, then three samples
  machine.run(14s);
  ASSERT_TRUE(machine.confirmed(kLink));
  EXPECT_EQ(machine.open(kLink)->detail,
            "Under load the PCIe link runs x4 at 16 GT/s; card and slot can do x16 at 16 GT/s.");
  EXPECT_EQ(evidence(*machine.open(kLink), "pcie.width"), "x4");
  EXPECT_EQ(evidence(*machine.open(kLink), "pcie.width_max"), "x16");
}

TEST(PcieDowngraded, AnIdleLinkIsNeverJudged) {
  Machine machine;
  set(machine.sample, R::PcieWidth, 1);
  set(machine.sample, R::PcieSpeed, 2.5);
  machine.run(24h, 10s);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieDowngraded, LowSpeedAtLightLoadIsDpmAtWork) {
  auto machine = loaded();
  set(machine.sample, R::UtilizationGfx, 60);
  set(machine.sample, R::PcieSpeed, 2.5);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieDowngraded, LowSpeedUnderHeavyLoadIsConfirmedAfterHalfAMinute) {
  auto machine = loaded();
  set(machine.sample, R::PcieSpeed, 8);
  machine.run(50s);  // 20 s to settle, 30 s of heavy load
  EXPECT_TRUE(machine.changes.empty());
  machine.run(14s);
  EXPECT_TRUE(machine.confirmed(kLink));
}

TEST(PcieDowngraded, BusyStuckAtHundredOnAnIdleCardIsNoLoad) {
  Machine machine;
  set(machine.sample, R::UtilizationGfx, 100);
  set(machine.sample, R::PcieWidth, 1);
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieDowngraded, ASlotThatOffersLessThanTheCardIsNoFault) {
  auto machine = loaded();
  set(machine.sample, R::PcieWidth, 8);
  set(machine.sample, R::PcieWidthMax, 8);
  set(machine.sample, R::PcieSpeed, 8);
  set(machine.sample, R::PcieSpeedMax, 8);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieDowngraded, DeadLinkSentinelsAreNoWidths) {
  for (const double width : {0.0, 63.0, 255.0}) {
    auto machine = loaded();
    set(machine.sample, R::PcieWidth, width);
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty()) << width;
    set(machine.sample, R::PcieWidth, 16);
    set(machine.sample, R::PcieWidthMax, 63);
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty());
  }
}

TEST(PcieDowngraded, UnknownReadingsRaiseNothing) {
  for (const auto id : {R::PcieWidth, R::PcieWidthMax, R::UtilizationGfx}) {
    auto machine = loaded();
    set(machine.sample, R::PcieWidth, 4);
    set_status(machine.sample, id, ReadingStatus::Unreadable);
    machine.run(5min);
    EXPECT_TRUE(machine.changes.empty());
  }
}

TEST(PcieDowngraded, AnApuHasNoSlot) {
  auto device = navi31();
  device.family = AsicFamily::ApuRdna3;
  Machine machine(device);
  put_under_load(machine.sample);
  set(machine.sample, R::PcieWidth, 4);
  machine.run(5min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(PcieDowngraded, StaysWhileIdleAndClearsAtTheFullLink) {
  auto machine = loaded();
  set(machine.sample, R::PcieWidth, 4);
  machine.run(1min);
  ASSERT_TRUE(machine.confirmed(kLink));
  machine.sample = idle_desktop();  // idle, 2.5 GT/s
  machine.run(1h);
  EXPECT_TRUE(machine.confirmed(kLink));
  set(machine.sample, R::PcieSpeed, 16);
  machine.run(12s);
  EXPECT_EQ(machine.open(kLink), nullptr);
}

TEST(PcieDowngraded, ASleepNeitherRaisesNorClears) {
  auto machine = loaded();
  set(machine.sample, R::PcieWidth, 4);
  machine.run(1min);
  machine.sample.power = PowerState::Suspended;
  machine.run(1h);
  EXPECT_TRUE(machine.confirmed(kLink));
}

TEST(PcieDowngraded, OneLookUnderLoadSuffices) {
  auto machine = loaded();
  set(machine.sample, R::PcieWidth, 8);
  auto conditions = judge_once(machine.device, machine.sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, kLink);
  EXPECT_EQ(evidence(conditions[0], "pcie.width"), "x8");
  set(machine.sample, R::PcieWidth, 16);
  set(machine.sample, R::PcieSpeed, 2.5);
  conditions = judge_once(machine.device, machine.sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(evidence(conditions[0], "pcie.speed"), "2.5 GT/s");
}

}  // namespace
}  // namespace gpuhealth::health
