// SPDX-License-Identifier: Apache-2.0
// PCI configuration space through sysfs, and the registers of the PCI Express capability (PCIe base
// specification 7.5.3). All but the first 64 bytes need root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actions/machine.hpp"

namespace gpuhealth::actions {

inline constexpr unsigned kLinkCapabilities = 0x0c;
inline constexpr unsigned kLinkControl = 0x10;
inline constexpr unsigned kLinkStatus = 0x12;
inline constexpr unsigned kLinkControl2 = 0x30;
inline constexpr unsigned kRetrainLink = 1U << 5U;
inline constexpr unsigned kLinkTraining = 1U << 11U;
inline constexpr unsigned kTargetSpeed = 0xf;

// `config`: ".../config". Little-endian, 16 bits. A device that is gone answers with all ones, which is an error here.
Result<unsigned> read_config(const Machine& machine, const std::string& config, unsigned offset);
Result<void> write_config(const Machine& machine, const std::string& config, unsigned offset, unsigned value);
// Where the PCI Express capability lies.
Result<unsigned> find_express(const Machine& machine, const std::string& config);

struct LinkNow {
  unsigned generation = 0;  // 1: 2.5 GT/s … 6: 64 GT/s
  unsigned width = 0;
  unsigned highest = 0;  // what this port can do
  unsigned target = 0;   // LNKCTL2; 0: the port has none
};
Result<LinkNow> read_link(const Machine& machine, const std::string& config);

// "none", "integrity" or "confidentiality"; empty where the kernel has no lockdown.
std::string lockdown(const Machine& machine);
bool secure_boot(const Machine& machine);

}  // namespace gpuhealth::actions
