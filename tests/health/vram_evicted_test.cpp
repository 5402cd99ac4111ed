// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
constexpr auto kEvicted = ConditionType::VramEvicted;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

void set_memory(Sample& sample, double vram_gib, double gtt_gib) {
  set(sample, R::VramUsed, vram_gib * kGib);
  set(sample, R::GttUsed, gtt_gib * kGib);
}

// A game holds 9 GiB, the machine sleeps for the night, and 8 GiB of it are in system memory afterwards.
Machine resumed(double vram_after_gib, double gtt_after_gib) {
  Machine machine;
  set_memory(machine.sample, 10, 0.5);
  machine.run(1min);
  machine.pass(8h);
  set_memory(machine.sample, vram_after_gib, gtt_after_gib);
  return machine;
}

TEST(VramEvicted, WhatMovedAtSuspendAndStaysIsConfirmedAfterAMinute) {
  auto machine = resumed(2, 8.5);
  machine.run(60s);
  EXPECT_EQ(machine.seen(), (std::vector<Seen>{{ChangeKind::Raised, kEvicted}}));
  machine.run(4s);
  ASSERT_TRUE(machine.confirmed(kEvicted));
  const auto& condition = *machine.open(kEvicted);
  EXPECT_EQ(condition.detail,
            "8 GiB moved from video to system memory when the machine slept, and 22 GiB of video memory are free.");
  EXPECT_EQ(evidence(condition, "gtt.used before"), "512 MiB");
  EXPECT_EQ(evidence(condition, "gtt.used"), "8.5 GiB");
  EXPECT_EQ(evidence(condition, "vram.used before"), "10 GiB");
}

TEST(VramEvicted, WhatMovesBackWithinAMinuteIsDroppedSilently) {
  auto machine = resumed(2, 8.5);
  machine.run(20s);
  set_memory(machine.sample, 10, 0.5);
  machine.run(5min);
  ASSERT_EQ(machine.seen(), (std::vector<Seen>{{ChangeKind::Raised, kEvicted}, {ChangeKind::Cleared, kEvicted}}));
  EXPECT_FALSE(machine.changes.back().was_confirmed);
}

TEST(VramEvicted, SystemMemoryThatGrowsWithoutASleepIsSomebodysWork) {
  Machine machine;
  set_memory(machine.sample, 10, 0.5);
  machine.run(1min);
  set_memory(machine.sample, 2, 8.5);  // one program ends, another pins host memory
  machine.run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(VramEvicted, MuchSystemMemoryAloneIsNoFault) {
  Machine machine;
  set_memory(machine.sample, 4, 24);
  machine.run(10min);
  machine.pass(8h);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(VramEvicted, SystemMemoryThatGrewWhileVideoMemoryStayedIsAnotherProgram) {
  auto machine = resumed(10, 8.5);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(VramEvicted, ADesktopsLittleMoveRaisesNothing) {
  auto machine = resumed(9.2, 1.3);  // 0.8 GiB: more than 256 MiB, less than a tenth of 10 GiB
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
  Machine small;
  set_memory(small.sample, 0.5, 0.1);
  small.run(1min);
  small.pass(8h);
  set_memory(small.sample, 0.3, 0.3);  // 205 MiB: more than a tenth, less than 256 MiB
  small.run(10min);
  EXPECT_TRUE(small.changes.empty());
}

TEST(VramEvicted, WithoutRoomInVideoMemoryItRightlyLiesInSystemMemory) {
  auto machine = resumed(2, 8.5);
  set(machine.sample, R::VramTotal, 8 * kGib);  // 6 GiB free for 8 GiB
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(VramEvicted, StaysUntilHalfTheThresholdIsLeftEvenIfVideoMemoryFillsAgain) {
  auto machine = resumed(2, 8.5);
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kEvicted));
  set_memory(machine.sample, 10, 8.5);  // "VRAM figures look normal"
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kEvicted));
  set_memory(machine.sample, 10, 1.1);  // 0.6 GiB left: below a tenth, above half of that
  machine.run(10min);
  EXPECT_TRUE(machine.confirmed(kEvicted));
  set_memory(machine.sample, 10, 0.9);
  machine.run(12s);
  EXPECT_EQ(machine.open(kEvicted), nullptr);
}

TEST(VramEvicted, ARuntimeSuspendCountsAsASleep) {
  Machine machine;
  set_memory(machine.sample, 10, 0.5);
  machine.run(1min);
  machine.sample.power = PowerState::Suspended;
  set_memory(machine.sample, 0.1, 10.4);  // moved out while the GPU is off: by design
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
  machine.sample.power = PowerState::Active;
  machine.run(70s);
  EXPECT_TRUE(machine.confirmed(kEvicted));
}

TEST(VramEvicted, AnApusMemoryIsSystemMemory) {
  auto device = navi31();
  device.family = AsicFamily::ApuRdna3;
  Machine machine(device);
  set_memory(machine.sample, 10, 0.5);
  machine.run(1min);
  machine.pass(8h);
  set_memory(machine.sample, 2, 8.5);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(VramEvicted, UnknownReadingsRaiseNothingAndDoNotHideTheSleep) {
  auto machine = resumed(2, 8.5);
  set_status(machine.sample, R::VramUsed, ReadingStatus::InReset);
  machine.run(10s);
  EXPECT_TRUE(machine.changes.empty());
  set_memory(machine.sample, 2, 8.5);
  machine.run(70s);
  EXPECT_TRUE(machine.confirmed(kEvicted));
}

}  // namespace
}  // namespace gpuhealth::health
