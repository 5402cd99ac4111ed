// SPDX-License-Identifier: Apache-2.0
// Resets and rescans: what interrupts people's work, and what forbids it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kRecover = "/sys/kernel/debug/dri/1/amdgpu_gpu_recover";

void with_debugfs(TestMachine& m) {
  m.write("/sys/kernel/debug/dri/0/name", "simpledrm dev=simple-framebuffer.0 unique=x\n");
  m.write("/sys/kernel/debug/dri/0/amdgpu_gpu_recover", "9\n");
  m.write("/sys/kernel/debug/dri/1/name", "amdgpu dev=" + m.pci() + " unique=" + m.pci() + "\n");
  m.write(kRecover, "0\n");
}

// A process with the GPU open, whose engine time grows from one look to the next.
void with_job(TestMachine& m) {
  m.write("/proc/4242/comm", "python3\n");
  m.write("/sys/class/kfd/kfd/proc/4242/pasid", "32770\n");
}

TEST(GpuReset, ReadsTheOneFileThatResetsThisGpu) {
  TestMachine m;
  with_debugfs(m);
  const auto done = m.run(ActionKind::GpuReset);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(kRecover + " read"));
  EXPECT_EQ(m.last().state, "done");
}

TEST(GpuReset, AFailedRecoveryIsReported) {
  TestMachine m;
  with_debugfs(m);
  m.write(kRecover, "-62\n");
  const auto failed = m.run(ActionKind::GpuReset);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("says -62"));
  EXPECT_EQ(m.last().state, "failed");
}

TEST(GpuReset, WithoutASafeWayNothingIsTried) {
  TestMachine m;
  const auto refused = m.run(ActionKind::GpuReset);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("no safe way"));
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(GpuReset, NotWhileProgramsUseTheGpuUnlessTold) {
  TestMachine m;
  with_debugfs(m);
  with_job(m);
  const auto refused = m.run(ActionKind::GpuReset);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("in use: pid 4242"));
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_TRUE(m.run(ActionKind::GpuReset, {{"with_jobs", "true"}}));
}

TEST(GpuReset, NotWhileADisplayHangsOnItUnlessTold) {
  TestMachine m;
  with_debugfs(m);
  m.write(m.device() + "/drm/card0/card0-DP-1/status", "connected\n");
  m.write(m.device() + "/drm/card0/card0-DP-1/enabled", "enabled\n");
  const auto refused = m.run(ActionKind::GpuReset);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("a display hangs on this GPU (card0-DP-1)"));
  EXPECT_TRUE(m.run(ActionKind::GpuReset, {{"with_display", "true"}}));
}

TEST(GpuReset, AGpuOfAVirtualMachineIsNotOurs) {
  TestMachine m;
  with_debugfs(m);
  const auto link = m.root().string() + m.device() + "/driver";
  std::filesystem::create_directories(m.root() / "sys/bus/pci/drivers/vfio-pci");
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(m.root() / "sys/bus/pci/drivers/vfio-pci", link);
  const auto refused = m.run(ActionKind::GpuReset);
  ASSERT_FALSE(refused);
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(PciRescan, RemovesTheWholeCardAtItsSwitchAndLooksAtTheSlotAgain) {
  TestMachine m;
  m.write(m.port() + "/rescan", "");
  m.write(m.port() + "/0000:01:00.0/remove", "");
  const auto done = m.run(ActionKind::PciRescan);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(m.port() + "/0000:01:00.0/remove 1", m.port() + "/rescan 1"));
  EXPECT_EQ(m.last().state, "done");
}

TEST(PciRescan, ACardThatDoesNotComeBackIsReported) {
  TestMachine m;
  m.comes_back = false;
  m.write("/sys/bus/pci/rescan", "");
  m.write(m.port() + "/0000:01:00.0/remove", "");
  const auto failed = m.run(ActionKind::PciRescan);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("did not come back"));
  EXPECT_EQ(m.last().state, "failed");
}

TEST(PciRescan, ALostCardOnlyNeedsToBeLookedFor) {
  TestMachine m;
  m.write("/sys/bus/pci/rescan", "");
  m.lose_card();
  const auto done = m.run(ActionKind::PciRescan);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre("/sys/bus/pci/rescan 1"));
}

TEST(PciRescan, TheSoundDeviceGoesTooWhereThereIsNoSwitch) {
  TestMachine m({sim::idle_card(sim::rx580(), 0)});
  m.write("/sys/bus/pci/rescan", "");
  m.write(m.device() + "/remove", "");
  m.write("/sys/bus/pci/devices/0000:01:00.1/remove", "");
  const auto done = m.run(ActionKind::PciRescan);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre("/sys/bus/pci/devices/0000:01:00.0/remove 1",
                                           "/sys/bus/pci/devices/0000:01:00.1/remove 1", "/sys/bus/pci/rescan 1"));
}

}  // namespace
}  // namespace gpuhealth::actions
