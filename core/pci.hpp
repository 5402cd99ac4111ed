// SPDX-License-Identifier: Apache-2.0
// PCI addresses as the kernel writes them: "0000:03:00.0".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuhealth {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0..31
  std::uint8_t function = 0;  // 0..7
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

std::string to_string(const PciAddress& address);
// Takes "0000:03:00.0" and, as people type it, "03:00.0". Null for anything else.
std::optional<PciAddress> parse_pci_address(std::string_view text);

}  // namespace gpuhealth
