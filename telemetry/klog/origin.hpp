// SPDX-License-Identifier: Apache-2.0
// Who says a message, and of which device: the driver's name, PCI address, [drm:function [module]] and *ERROR* marks
// that stand before what is said. "amdgpu X: amdgpu: text" until 6.x and "amdgpu X: text" since are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/pci.hpp"

namespace gpuhealth::klog {

// Bits, so that a pattern can take several.
enum From : std::uint16_t {
  Bare = 1,  // no driver named, or only "[drm]"
  Amd = 2,   // amdgpu, kfd
  Radeon = 4,
  Nvidia = 8,
  Nouveau = 16,
  I915 = 32,
  Xe = 64,
  Pci = 128,    // any driver's line about a PCI function; matched beside the driver's own bit
  Port = 256,   // pcieport
  Other = 512,  // another driver, whose lines are not about a GPU
};
inline constexpr std::uint16_t kGpuDrivers = Amd | Radeon | Nvidia | Nouveau | I915 | Xe;

struct Origin {
  std::uint16_t from = Bare;
  std::optional<PciAddress> device;
  std::string_view driver;  // as written
  std::string_view text;    // what is said
};
Origin parse_origin(std::string_view message);

std::uint16_t from_driver(std::string_view name);
// The address at the front of `text`, "0000:03:00.0" (domain of 4 to 8 digits); its length goes to `length`.
std::optional<PciAddress> address_at(std::string_view text, std::size_t& length);

}  // namespace gpuhealth::klog
