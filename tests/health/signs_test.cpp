// SPDX-License-Identifier: Apache-2.0
// Conditions that come from what the kernel says.
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
using C = ConditionType;

void say(Machine& machine, Sign sign, const std::string& text = "the kernel's words") {
  const auto now = machine.clock.now();
  machine.take(machine.engine.on_sign(machine.device, sign, {now.steady, now.wall, text}, now));
}

TEST(GpuHang, AFailedResetIsConfirmedAtOnceWithoutASample) {
  Machine machine;
  say(machine, Sign::ResetFailed, "amdgpu 0000:03:00.0: GPU reset(2) failed");
  ASSERT_TRUE(machine.confirmed(C::GpuHang));
  EXPECT_EQ(machine.open(C::GpuHang)->severity, Severity::Critical);
  EXPECT_EQ(evidence(*machine.open(C::GpuHang), "kernel log"), "amdgpu 0000:03:00.0: GPU reset(2) failed");
}

TEST(GpuHang, StaysWhileSamplesLookWell) {
  Machine machine;
  say(machine, Sign::ResetFailed);
  machine.run(1h, 10s);
  EXPECT_TRUE(machine.confirmed(C::GpuHang));
}

TEST(GpuHang, AResetThatSucceedsLaterEndsItAfterAMinute) {
  Machine machine;
  say(machine, Sign::ResetFailed);
  machine.run(10s);
  say(machine, Sign::ResetSucceeded);
  machine.run(50s);
  EXPECT_TRUE(machine.confirmed(C::GpuHang));
  machine.run(20s);
  EXPECT_EQ(machine.open(C::GpuHang), nullptr);
}

TEST(GpuHang, AHangThatAResetEndedIsNoCondition) {
  Machine machine;
  say(machine, Sign::SchedulerHang);
  machine.run(4s);
  say(machine, Sign::ResetBegan);
  say(machine, Sign::ResetSucceeded);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(GpuHang, ASchedulerThatHangsWithoutAResetIsOneAfterHalfAMinute) {
  Machine machine;
  say(machine, Sign::SchedulerHang, "MES failed to respond to msg=REMOVE_QUEUE");
  machine.run(28s);
  EXPECT_EQ(machine.open(C::GpuHang), nullptr);
  machine.run(4s);
  EXPECT_TRUE(machine.confirmed(C::GpuHang));
}

TEST(GpuHang, ADriverThatIsBoundAnewEndsIt) {
  Machine machine;
  machine.run(4s);
  say(machine, Sign::ResetFailed);
  machine.device.driver.clear();
  machine.run(10s);
  EXPECT_TRUE(machine.confirmed(C::GpuHang));
  machine.device.driver = "amdgpu";
  machine.run(64s);
  EXPECT_EQ(machine.open(C::GpuHang), nullptr);
}

TEST(GpuHang, EventsOfTheSameMomentDoNotClearIt) {
  Machine machine;
  say(machine, Sign::ResetSucceeded);
  say(machine, Sign::ResetFailed);  // in the same microsecond of the clock: the failure was said last
  // Equal times are taken as answered; the next failure is not.
  machine.pass(1s);
  say(machine, Sign::ResetFailed);
  EXPECT_TRUE(machine.confirmed(C::GpuHang));
}

TEST(ResetLoop, ThreeResetsInAnHourAreOneEachThreeMinutes) {
  Machine machine;
  for (int i = 0; i < 2; ++i) {
    say(machine, Sign::ResetBegan);
    say(machine, Sign::ResetSucceeded);
    machine.run(3min);
  }
  EXPECT_EQ(machine.open(C::ResetLoop), nullptr);
  say(machine, Sign::ResetBegan);
  machine.run(4s);
  ASSERT_TRUE(machine.confirmed(C::ResetLoop));
  EXPECT_EQ(machine.open(C::ResetLoop)->detail, "The driver reset the GPU 3 times within 60 minutes.");
}

TEST(ResetLoop, TwoHoursOfQuietClearIt) {
  Machine machine;
  for (int i = 0; i < 3; ++i) say(machine, Sign::ResetBegan);
  machine.run(4s);
  ASSERT_TRUE(machine.confirmed(C::ResetLoop));
  machine.run(121min, 10s);
  EXPECT_EQ(machine.open(C::ResetLoop), nullptr);
}

TEST(DeviceLost, TheKernelsWordAloneIsNotEnough) {
  Machine machine;
  set(machine.sample, R::PcieAnswers, 1);
  say(machine, Sign::BusLost, "device lost from bus!");
  machine.run(5min);
  EXPECT_EQ(machine.open(C::DeviceLost), nullptr);
}

TEST(DeviceLost, TheKernelsWordAndAllOnesAreTwoSigns) {
  Machine machine;
  machine.run(10s);
  say(machine, Sign::BusLost, "device lost from bus!");
  set(machine.sample, R::PcieAnswers, 0);
  machine.run(6s);
  ASSERT_TRUE(machine.confirmed(C::DeviceLost));
  EXPECT_EQ(evidence(*machine.open(C::DeviceLost), "kernel log"), "device lost from bus!");
  EXPECT_EQ(evidence(*machine.open(C::DeviceLost), "configuration space"), "reads all ones");
}

TEST(DeviceLost, AllSensorsFailingIsASign) {
  Machine machine;
  say(machine, Sign::BusLost);
  for (const auto id : {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory, R::PowerAverage, R::ClockGfx,
                        R::ClockMemory, R::UtilizationGfx})
    set_status(machine.sample, id, ReadingStatus::SmuDead);
  machine.run(10s);
  EXPECT_TRUE(machine.confirmed(C::DeviceLost));
}

TEST(DeviceLost, ADeadManagementFirmwareAloneIsNoLostDevice) {
  Machine machine;
  for (const auto id : {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory, R::PowerAverage, R::ClockGfx,
                        R::ClockMemory, R::UtilizationGfx})
    set_status(machine.sample, id, ReadingStatus::SmuDead);
  machine.run(5min);
  EXPECT_EQ(machine.open(C::DeviceLost), nullptr);
}

TEST(DeviceLost, AResetThatWorkedTakesTheWordBack) {
  Machine machine;
  say(machine, Sign::BusLost);
  machine.pass(1s);
  say(machine, Sign::ResetSucceeded);
  set_status(machine.sample, R::PcieWidth, ReadingStatus::Implausible);
  machine.run(1min);
  EXPECT_EQ(machine.open(C::DeviceLost), nullptr);
}

// A reset reported as successful while the management firmware is dead (captures: trap 12).
TEST(SmuDead, Trap12AResetThatSucceededDoesNotHideDeadFirmware) {
  Machine machine;
  say(machine, Sign::ResetBegan);
  machine.pass(2s);
  say(machine, Sign::ResetSucceeded);
  say(machine, Sign::SmuSilent, "SMU: I'm not done with your previous command");
  for (const auto id : {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory, R::PowerAverage, R::ClockGfx,
                        R::ClockMemory, R::VoltageGfx, R::UtilizationGfx, R::UtilizationMemory, R::FanRpm})
    set_status(machine.sample, id, ReadingStatus::SmuDead);
  machine.run(14s);
  EXPECT_TRUE(machine.confirmed(C::SmuDead));
}

TEST(SmuDead, WithTheKernelsWordOneKindOfSensorIsEnough) {
  Machine machine;
  say(machine, Sign::SmuSilent);
  for (const auto id : {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory})
    set_status(machine.sample, id, ReadingStatus::SmuDead);
  for (const auto id : {R::PowerAverage, R::ClockGfx, R::ClockMemory, R::VoltageGfx, R::UtilizationGfx,
                        R::UtilizationMemory, R::FanRpm})
    set_status(machine.sample, id, ReadingStatus::Unsupported);
  machine.run(14s);
  EXPECT_TRUE(machine.confirmed(C::SmuDead));
}

TEST(FirmwareMissing, AGpuThatDidNotComeUpForLackOfAFile) {
  Machine machine;
  machine.device.driver.clear();
  say(machine, Sign::FirmwareMissing, "Direct firmware load for amdgpu/polaris12_mc.bin failed with error -2");
  say(machine, Sign::InitFailed, "Fatal error during GPU init");
  machine.run(40s);
  ASSERT_TRUE(machine.confirmed(C::FirmwareMissing));
  EXPECT_EQ(evidence(*machine.open(C::FirmwareMissing), "kernel log"),
            "Direct firmware load for amdgpu/polaris12_mc.bin failed with error -2");
}

TEST(FirmwareMissing, AnOptionalFileOfAGpuThatWorksIsNobodysConcern) {
  Machine machine;
  say(machine, Sign::FirmwareMissing);
  machine.run(10min);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(DriverMissing, TheKernelsReasonStandsInTheEvidence) {
  Machine machine;
  machine.device.driver.clear();
  say(machine, Sign::InitFailed, "Fatal error during GPU init");
  machine.run(70s);
  ASSERT_TRUE(machine.confirmed(C::DriverMissing));
  EXPECT_EQ(evidence(*machine.open(C::DriverMissing), "kernel log"), "Fatal error during GPU init");
}

}  // namespace
}  // namespace gpuhealth::health
