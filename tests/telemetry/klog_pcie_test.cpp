// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "klog_support.hpp"

namespace gpuhealth::klog {
namespace {

using test::Said;
using test::said_of;

const std::string kTopology =
    "[    0.4] pci 0000:00:03.1: [1022:1483] type 01 class 0x060400 PCIe Root Port\n"
    "[    0.4] pci 0000:0a:00.0: [1002:1478] type 01 class 0x060400 PCIe Switch Upstream Port\n"
    "[    0.4] pci 0000:0c:00.0: [1002:744c] type 00 class 0x030000 PCIe Legacy Endpoint\n"
    "[    0.4] pci 0000:00:03.1: PCI bridge to [bus 0a-0c]\n"
    "[    0.4] pci 0000:00:02.1: [1022:1483] type 01 class 0x060400 PCIe Root Port\n"
    "[    0.4] pci 0000:02:00.0: [8086:1563] type 00 class 0x020000 PCIe Endpoint\n"
    "[    0.4] pci 0000:00:02.1: PCI bridge to [bus 02]\n";

std::string aer(const std::string& who, const std::string& severity) {
  return "[   60.1] " + who + ": PCIe Bus Error: severity=" + severity + ", type=Data Link Layer, (Receiver ID)\n";
}

TEST(KlogPcie, AnErrorOfAPortAboveAGpuIsTheGpus) {
  EXPECT_EQ(said_of(kTopology + aer("pcieport 0000:00:03.1", "Corrected")),
            Said{"8 pcie.aer.correctable warning 0000:00:03.1 x1"});
  EXPECT_EQ(said_of(kTopology + aer("pcieport 0000:0a:00.0", "Uncorrectable (Non-Fatal)")),
            Said{"8 pcie.aer.nonfatal warning 0000:0a:00.0 x1"});
}

TEST(KlogPcie, AnErrorOfAPortAboveSomethingElseIsNot) {
  EXPECT_EQ(said_of(kTopology + aer("pcieport 0000:00:02.1", "Uncorrected (Fatal)")), Said{});
  EXPECT_EQ(said_of(aer("nvme 0000:04:00.0", "Corrected")), Said{});
  EXPECT_EQ(said_of(kTopology + "[ 60.0] pcieport 0000:00:02.1: AER: Corrected error received: 0000:02:00.0\n"),
            Said{});
}

TEST(KlogPcie, AllSeveritiesOfAllKernels) {
  for (const auto& [severity, said] :
       std::vector<std::pair<std::string, std::string>>{{"Corrected", "pcie.aer.correctable warning"},
                                                        {"Correctable", "pcie.aer.correctable warning"},
                                                        {"Uncorrected (Non-Fatal)", "pcie.aer.nonfatal warning"},
                                                        {"Uncorrectable (Non-Fatal)", "pcie.aer.nonfatal warning"},
                                                        {"Uncorrected (Fatal)", "pcie.aer.fatal critical"},
                                                        {"Uncorrectable (Fatal)", "pcie.aer.fatal critical"}})
    EXPECT_EQ(said_of(aer("amdgpu 0000:03:00.0", severity)), Said{"1 " + said + " 0000:03:00.0 x1"}) << severity;
}

TEST(KlogPcie, TheRootPortsAnnouncementIsNoSecondError) {
  EXPECT_EQ(
      said_of(
          "[ 4.921244] pcieport 0000:00:01.0: AER: Corrected error message received from 0000:03:00.0\n"
          "[ 4.921251] amdgpu 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
          "[ 4.930995] amdgpu 0000:03:00.0:   device [1002:744c] error status/mask=00000040/00002000\n"
          "[ 4.939430] amdgpu 0000:03:00.0:    [ 6] BadTLP                \n"),
      Said{"2 pcie.aer.correctable warning 0000:03:00.0 x1"});
}

TEST(KlogPcie, AnAnnouncementAloneCounts) {
  EXPECT_EQ(said_of("[ 4.9] pcieport 0000:00:01.0: AER: Multiple Uncorrectable (Fatal) error message received from "
                    "0000:03:00.0\n"),
            Said{"1 pcie.aer.fatal critical 0000:03:00.0 x1"});
  EXPECT_EQ(said_of("[ 4.9] pcieport 0001:00:00.0: AER: Corrected error received: id=0900\n"),
            Said{"1 pcie.aer.correctable warning 0001:09:00.0 x1"});
}

TEST(KlogPcie, APortCutOffTheGpu) {
  EXPECT_EQ(said_of(kTopology + "[ 61.0] pcieport 0000:00:03.1: DPC: containment event, status:0x1f01 source:0x0000\n"
                                "[ 61.1] pcieport 0000:00:03.1: pciehp: Slot(3): Link Down\n"
                                "[ 61.2] pcieport 0000:00:03.1: AER: device recovery failed\n"),
            (Said{"8 pcie.dpc critical 0000:00:03.1 x1", "9 pcie.link.down warning 0000:00:03.1 x1",
                  "10 pcie.recovery.failed critical 0000:00:03.1 x1"}));
}

TEST(KlogPcie, ADockThatIsPulledOutIsInformation) {
  EXPECT_EQ(said_of("[ 61.1] pcieport 0000:20:01.0: pciehp: Slot(12): Card not present\n"),
            Said{"1 pcie.link.down info 0000:20:01.0 x1"});
}

TEST(KlogPcie, ADeviceThatIsNotThereAfterAReset) {
  EXPECT_EQ(said_of(kTopology + "[ 99.0] vfio-pci 0000:0c:00.0: not ready 65535ms after bus reset; giving up\n"),
            Said{"8 bus.lost warning 0000:0c:00.0 x1"});
  EXPECT_EQ(
      said_of("[ 99.0] amdgpu 0000:0c:00.0: can't change power state from D3cold to D0 (config space inaccessible)\n"),
      Said{"1 bus.lost critical 0000:0c:00.0 x1"});
  EXPECT_EQ(said_of("[ 99.0] nvme 0000:04:00.0: Unable to change power state from D3cold to D0, device inaccessible\n"),
            Said{});
  EXPECT_EQ(said_of("[ 99.0] snd_hda_intel 0000:c1:00.1: Refused to change power state from D0 to D3hot\n"), Said{});
}

std::string record(const std::string& severity, const std::string& device, const std::string& code) {
  const std::string tag = "[ 2484.37] {359}[Hardware Error]: ";
  return tag + "Hardware error from APEI Generic Hardware Error Source: 512\n" + tag + "event severity: " + severity +
         "\n" + tag + " Error 0, type: " + severity + "\n" + tag + "  section_type: PCIe error\n" + tag +
         "  port_type: 4, root port\n" + tag + "  device_id: " + device + "\n" + tag +
         "  vendor_id: 0x1022, device_id: 0x1483\n" + tag + "  class_code: " + code + "\n";
}

TEST(KlogPcie, TheFirmwaresRecordIsAPcieErrorNotAGpuMemoryError) {
  EXPECT_EQ(said_of(record("corrected", "0000:20:03.1", "060400")),
            Said{"6 pcie.aer.correctable warning 0000:20:03.1 x1"});
  EXPECT_EQ(said_of(record("recoverable", "0000:54:01.0", "060400")),
            Said{"6 pcie.aer.nonfatal warning 0000:54:01.0 x1"});
  EXPECT_EQ(said_of(record("fatal", "0000:03:00.0", "030000")), Said{"6 pcie.aer.fatal critical 0000:03:00.0 x1"});
}

TEST(KlogPcie, TheFirmwaresRecordOfADiskIsNothing) {
  EXPECT_EQ(said_of(record("recoverable", "0000:04:00.0", "010802")), Said{});
}

TEST(KlogPcie, MemoryErrorsOfTheMachineAreNotTheGpus) {
  EXPECT_EQ(said_of("{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1\n"
                    "{1}[Hardware Error]: event severity: corrected\n"
                    "{1}[Hardware Error]:  Error 0, type: corrected\n"
                    "{1}[Hardware Error]:   section_type: memory error\n"
                    "mce: [Hardware Error]: Machine check events logged\n"
                    "[Hardware Error]: Corrected error, no action required.\n"),
            Said{});
}

}  // namespace
}  // namespace gpuhealth::klog
