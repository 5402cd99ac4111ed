// SPDX-License-Identifier: Apache-2.0
// The traps of kernel logs, each by its number in the list that comes with the captures.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "klog_support.hpp"

namespace gpuhealth::klog {
namespace {

using test::Said;
using test::said_of;

TEST(KlogTraps, Trap01CountsOfASleepingGpuAreNoErrors) {
  EXPECT_EQ(said_of("amdgpu 0000:43:00.0: amdgpu: 1048560 correctable hardware errors detected in umc block, no user "
                    "action is needed."),
            Said{"1 ras.correctable info 0000:43:00.0 x1"});
  EXPECT_EQ(said_of("amdgpu 0000:43:00.0: {7}socket: 1, die: 3, 2097120 uncorrectable hardware errors detected in "
                    "total in umc block"),
            Said{"1 ras.uncorrectable info 0000:43:00.0 x1"});
  EXPECT_EQ(said_of("amdgpu 0000:43:00.0: amdgpu: 10485 correctable hardware errors detected in umc block"),
            Said{"1 ras.correctable warning 0000:43:00.0 x1"});
}

TEST(KlogTraps, Trap03TextDriftsBetweenKernels) {
  const Said begin = {"1 gpu.reset.begin warning 0000:03:00.0 x1"};
  for (const std::string_view line :
       {"amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "amdgpu 0000:03:00.0: GPU reset begin!",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!. Source:  3",
        "amdgpu 0000:03:00.0: GPU reset begin!. Source: 1"})
    EXPECT_EQ(said_of(line), begin) << line;
  const Said corrected = {"1 pcie.aer.correctable warning 0000:03:00.0 x1"};
  EXPECT_EQ(said_of("amdgpu 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"),
            corrected);
  EXPECT_EQ(said_of("amdgpu 0000:03:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)"),
            corrected);
  const Said poison = {"1 ras.poison critical 0000:68:00.0 x1"};
  EXPECT_EQ(said_of("amdgpu 0000:68:00.0: {14}poison is consumed by client 12, kick off gpu reset flow"), poison);
  EXPECT_EQ(said_of("amdgpu 0000:68:00.0: amdgpu: poison is consumed by client 12, kick off gpu reset flow"), poison);
  EXPECT_EQ(said_of("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=2"),
            Said{"1 ring.timeout warning - x1"});
}

// MI300X: what one card does is also logged by its neighbours. Each line stays with the card that it names.
TEST(KlogTraps, Trap05AnEventStaysWithTheCardThatTheLineNames) {
  EXPECT_EQ(
      said_of(
          "[ 1.0] amdgpu 0000:05:00.0: {3}socket: 4, die: 1 2 new uncorrectable hardware errors detected in umc block\n"
          "[ 1.0] amdgpu 0000:26:00.0: GPU reset begin!. Source:  2\n"
          "[ 1.0] amdgpu 0000:05:00.0: GPU reset begin!. Source:  2\n"),
      (Said{"1 ras.uncorrectable critical 0000:05:00.0 x1", "2 gpu.reset.begin warning 0000:26:00.0 x1",
            "3 gpu.reset.begin warning 0000:05:00.0 x1"}));
}

// An AER line names the port that saw the error: the card's own switch is the GPU's, whoever made the slot's port.
TEST(KlogTraps, Trap05TheCardsOwnSwitchIsTheGpusAndAnAmdRootPortIsNot) {
  const std::string boot =
      "[ 0.1] pci 0000:00:01.1: [1022:1483] type 01 class 0x060400\n"
      "[ 0.1] pci 0000:01:00.0: [144d:a808] type 00 class 0x010802\n"
      "[ 0.1] pci 0000:00:01.1: PCI bridge to [bus 01]\n";
  EXPECT_EQ(
      said_of(boot +
              "[ 9.0] pcieport 0000:00:01.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
              "[ 9.0] pcieport 0000:00:01.1:   device [1022:1483] error status/mask=00000001/00006000\n"),
      Said{});
  EXPECT_EQ(
      said_of("[ 9.0] pcieport 0000:07:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
              "[ 9.0] pcieport 0000:07:00.0:   device [1002:1478] error status/mask=00000001/00006000\n"
              "[ 9.1] nvme 0000:02:00.0:    [ 0] RxErr                  (First)\n"),
      Said{"1 pcie.aer.correctable warning 0000:07:00.0 x1"});
}

TEST(KlogTraps, Trap06AFailedResetIsFoundInAFloodOfNoise) {
  std::string log;
  for (int i = 0; i < 20000; ++i) log += "[  650.161112] [drm] Skip scheduling IBs!\n";
  log += "[  650.160935] amdgpu 0000:0b:00.0: amdgpu: GPU reset(2) failed\n";
  for (int i = 0; i < 20000; ++i) log += "[  650.161112] [drm] Skip scheduling IBs!\n";
  EXPECT_EQ(said_of(log), Said{"20001 gpu.reset.failed critical 0000:0b:00.0 x1"});
}

TEST(KlogTraps, Trap06SoftRecoveredAfterAFailedResetLeavesItFailed) {
  const auto said = said_of(
      "[42184.958597] amdgpu 0000:06:00.0: amdgpu: GPU reset(2) failed\n"
      "[42195.061025] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, but soft recovered\n");
  EXPECT_EQ(said, (Said{"1 gpu.reset.failed critical 0000:06:00.0 x1", "2 ring.recovered info - x1"}));
}

TEST(KlogTraps, Trap07AllOnesInAPageFaultMeansThatTheDeviceIsGone) {
  const Said gone = {"1 page_fault warning 0000:03:00.0 x1", "2 bus.lost critical 0000:03:00.0 x1"};
  for (const std::string_view status :
       {"GCVM_L2_PROTECTION_FAULT_STATUS:0xFFFFFFFF", "VM_L2_PROTECTION_FAULT_STATUS:0xFFFFFFFF",
        "MMVM_L2_PROTECTION_FAULT_STATUS:0xffffffff", "  VM_CONTEXT1_PROTECTION_FAULT_STATUS 0xFFFFFFFF"})
    EXPECT_EQ(said_of("[ 1.0] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:0)\n"
                      "[ 1.0] amdgpu 0000:03:00.0: amdgpu: " +
                      std::string(status) + "\n"),
              gone)
        << status;
  EXPECT_EQ(said_of("amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00801031"), Said{});
}

TEST(KlogTraps, Trap08DatesInOtherLanguagesFreeBsdAndLinesWithoutAnAddress) {
  EXPECT_EQ(said_of("11월 30 12:00:01 host kernel: amdgpu 0000:03:00.0: GPU reset(1) failed"),
            Said{"1 gpu.reset.failed critical 0000:03:00.0 x1"});
  EXPECT_EQ(
      said_of("Mar  3 10:01:02 bsd kernel: drmn0: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 pasid:32769)"),
      Said{"1 page_fault warning - x1"});
  EXPECT_EQ(said_of("[drm ERROR :amdgpu_job_timedout] ring gfx_0.0.0 timeout, signaled seq=100, emitted seq=103"),
            Said{"1 ring.timeout warning - x1"});
  EXPECT_EQ(said_of("drmn0: GPU reset begin!"), Said{"1 gpu.reset.begin warning - x1"});
  EXPECT_EQ(said_of("qcm fence wait loop timeout expired"), Said{"1 hws.hang critical - x1"});
}

TEST(KlogTraps, Trap09ASilentLogSaysNothing) {
  EXPECT_EQ(said_of(""), Said{});
  EXPECT_EQ(said_of("\n\n\n"), Said{});
  EXPECT_EQ(said_of("[    1.0] Linux version 6.12.57\n[    2.0] amdgpu: Virtual CRAT table created for CPU\n"), Said{});
}

TEST(KlogTraps, Trap12ADeadSmuStandsBesideAResetThatSucceeded) {
  EXPECT_EQ(said_of("[ 1.0] amdgpu 0000:03:00.0: GPU reset begin!. Source:  1\n"
                    "[ 2.0] amdgpu 0000:03:00.0: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x12\n"
                    "[ 3.0] amdgpu 0000:03:00.0: GPU reset(1) succeeded!\n"
                    "[ 9.0] amdgpu 0000:03:00.0: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x12\n"),
            (Said{"1 gpu.reset.begin warning 0000:03:00.0 x1", "2 smu.unresponsive critical 0000:03:00.0 x2",
                  "3 gpu.reset.succeeded info 0000:03:00.0 x1"}));
}

// A card number says which device only where the log itself does.
TEST(KlogTraps, CardNumbersAreDevicesOnlyWhereTheLogSaysSo) {
  const std::string use = "[ 9.0] [drm] Check your /sys/class/drm/card1/device/devcoredump/data\n";
  EXPECT_EQ(said_of(use), Said{"1 gpu.coredump info - x1"});
  EXPECT_EQ(said_of("[ 1.0] [drm] Initialized amdgpu 3.49.0 20150101 for 0000:0b:00.0 on minor 1\n" + use),
            Said{"2 gpu.coredump info 0000:0b:00.0 x1"});
  EXPECT_EQ(said_of("[ 1.0] [drm] Initialized amdgpu 3.49.0 20150101 for 0000:0b:00.0 on minor 0\n" + use),
            Said{"2 gpu.coredump info - x1"});
}

TEST(KlogTraps, ARuntimeResumeOfPolarisIsNoReset) {
  EXPECT_EQ(said_of("[ 9.148137] amdgpu 0000:01:00.0: GPU pci config reset\n"
                    "[ 14.041213] amdgpu: [powerplay] dpm has been enabled\n"),
            Said{});
}

TEST(KlogTraps, ACommandLineThatNamesTheDriverIsNoEvent) {
  EXPECT_EQ(said_of("[ 0.0] Command line: BOOT_IMAGE=/vmlinuz amdgpu.gpu_recovery=1 amdgpu.reset_method=4"), Said{});
}

}  // namespace
}  // namespace gpuhealth::klog
