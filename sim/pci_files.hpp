// SPDX-License-Identifier: Apache-2.0
// What the PCI core prints for one function: ids, link, AER counters (drivers/pci/pci-sysfs.c, pcie/aer.c).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/card.hpp"
#include "sim/device_files.hpp"

namespace gpuhealth::sim {

// The PCI Express port type, as in bits 7:4 of the capability.
enum class PciePort : std::uint8_t { Endpoint = 0, Root = 4, SwitchUp = 5, SwitchDown = 6 };

struct PciFunction {
  PciAddress address{};
  std::uint16_t vendor = 0x1002;
  std::uint16_t device = 0;
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;
  std::uint8_t revision = 0;
  std::uint32_t pci_class = 0;
  std::string driver{};  // empty: none bound
  PciePort port = PciePort::Endpoint;
  Link link{};
  Link link_max{};
  AerCounts aer{};
};

std::vector<FileText> pci_identity_files(const PciFunction& function);
std::vector<FileText> pci_live_files(const PciFunction& function);
std::string link_speed_text(double gts);  // "16.0 GT/s PCIe"

}  // namespace gpuhealth::sim
