// SPDX-License-Identifier: Apache-2.0
#include "core/device.hpp"

#include <gtest/gtest.h>

namespace gpuhealth {
namespace {

DeviceInfo rx580() {
  DeviceInfo d;
  d.pci = {0, 9, 0, 0};
  d.vendor_id = 0x1002;
  d.device_id = 0x67df;
  d.subsystem_vendor = 0x1da2;
  d.subsystem_device = 0xe387;
  d.vbios_version = "113-1E3871U-O4C";
  return d;
}

TEST(DeviceIdentity, UniqueIdComesFirst) {
  auto d = rx580();
  d.unique_id = "49afc8b43a8a6d30";
  d.serial = "PCB123";
  EXPECT_EQ(d.id(), "uid-49afc8b43a8a6d30");
}

TEST(DeviceIdentity, SerialComesSecond) {
  auto d = rx580();
  d.serial = "PCB 12/3";
  EXPECT_EQ(d.id(), "serial-PCB_12_3");
}

TEST(DeviceIdentity, WithoutBothItIsAddressIdsSubsystemAndVbios) {
  EXPECT_EQ(rx580().id(), "pci-0000:09:00.0-1002:67df-1da2:e387-113-1E3871U-O4C");
}

TEST(DeviceIdentity, CardAndRenderNumbersDoNotMatter) {
  auto a = rx580();
  auto b = rx580();
  a.card_node = "card0";
  b.card_node = "card1";
  b.render_node = "renderD129";
  EXPECT_EQ(a.id(), b.id());
}

}  // namespace
}  // namespace gpuhealth
