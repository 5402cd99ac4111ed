// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
constexpr auto kNoDriver = ConditionType::DriverMissing;

Machine with(const std::string& driver, std::uint16_t vendor, std::uint32_t pci_class) {
  auto device = navi31();
  device.driver = driver;
  device.vendor_id = vendor;
  device.pci_class = pci_class;
  Machine machine(device);
  machine.sample = Sample{};
  machine.sample.power = PowerState::Suspended;  // what the kernel says of a device without a driver
  return machine;
}

TEST(DriverMissing, AnAmdGpuWithoutADriverIsConfirmedAfterAMinute) {
  for (const std::uint32_t pci_class : {0x030000U, 0x038000U, 0x030200U, 0x120000U}) {
    auto machine = with("", 0x1002, pci_class);
    machine.run(60s);
    EXPECT_FALSE(machine.confirmed(kNoDriver));
    machine.run(2s);
    ASSERT_TRUE(machine.confirmed(kNoDriver)) << pci_class;
    EXPECT_EQ(machine.open(kNoDriver)->detail, "No driver is bound to the GPU at 0000:03:00.0.");
  }
}

TEST(DriverMissing, PassThroughAndOtherDriversAreByDesign) {
  for (const char* driver : {"amdgpu", "radeon", "vfio-pci", "pci-stub", "xen-pciback"}) {
    auto machine = with(driver, 0x1002, 0x030000);
    machine.run(10min);
    EXPECT_TRUE(machine.changes.empty()) << driver;
  }
}

TEST(DriverMissing, OtherVendorsAndOtherFunctionsAreNotJudged) {
  auto aspeed = with("", 0x1a03, 0x030000);
  aspeed.run(10min);
  EXPECT_TRUE(aspeed.changes.empty());
  auto audio = with("", 0x1002, 0x040300);
  audio.run(10min);
  EXPECT_TRUE(audio.changes.empty());
}

TEST(DriverMissing, LoadingTheDriverLateIsNoFault) {
  auto machine = with("", 0x1002, 0x030000);
  machine.run(30s);
  machine.device.driver = "amdgpu";
  machine.run(10min);
  ASSERT_EQ(machine.changes.size(), 2U);
  EXPECT_EQ(machine.changes[1].kind, ChangeKind::Cleared);
  EXPECT_FALSE(machine.changes[1].was_confirmed);
}

TEST(DriverMissing, EndsWhenTheBoundDriverGivesTheCardItsUniqueId) {
  auto device = navi31();
  device.driver.clear();
  device.unique_id.clear();
  Machine machine(device);
  machine.sample = Sample{};
  machine.run(2min);
  ASSERT_TRUE(machine.confirmed(kNoDriver));
  machine.device = navi31();
  machine.sample = idle_desktop();
  machine.run(2s);
  EXPECT_EQ(machine.open(kNoDriver), nullptr);
  EXPECT_EQ(evidence(machine.changes.back().condition, "cleared because"), "the GPU has another id now");
}

TEST(DriverMissing, OneLookSuffices) {
  const auto machine = with("", 0x1002, 0x030000);
  const auto conditions = judge_once(machine.device, machine.sample, {});
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].type, kNoDriver);
}

}  // namespace
}  // namespace gpuhealth::health
