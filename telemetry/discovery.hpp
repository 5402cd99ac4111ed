// SPDX-License-Identifier: Apache-2.0
// Which GPUs this machine has: PCI display and processing-accelerator functions of AMD, whatever driver they have, and
// Intel's discrete ones; never by counting DRM cards (partitions of MI300 are cards of their own). Reads files that
// never wake a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/error.hpp"
#include "telemetry/asic.hpp"

namespace gpuhealth::telemetry {

inline constexpr std::uint16_t kVendorAmd = 0x1002;
inline constexpr std::uint16_t kVendorNvidia = 0x10de;  // Intel's is in telemetry/intel.hpp

struct Discovery {
  std::vector<DeviceInfo> devices;  // by PCI address
  std::vector<std::string> notes;   // GPUs of other vendors, functions that could not be read
};

Result<Discovery> discover(const std::string& sysroot, const NameTable& names);

// The same in steps, for a reader that must not touch a device that does not answer.
// `at` is called before each device is touched and says whether it may be.
Result<std::vector<PciAddress>> list_gpus(const std::string& sysroot, std::vector<std::string>& notes,
                                          const std::function<bool(const PciAddress&)>& at = nullptr,
                                          std::uint16_t vendor = kVendorAmd);
Result<DeviceInfo> identify(const std::string& sysroot, const PciAddress& address, const NameTable& names);

// SYSROOT/sys/bus/pci/devices/ADDRESS
std::string device_dir(const std::string& sysroot, const PciAddress& address);
// SYSROOT/sys/bus/pci/devices/ADDRESS/hwmon/hwmonN, the one whose name is "amdgpu"; empty when there is none.
std::string hwmon_dir(const std::string& device_dir);
// The same, also of Intel's drivers: for reading alone, since their files of the same names are other limits.
std::string any_hwmon_dir(const std::string& device_dir);
// "6.12.117" and so on, from SYSROOT/proc/sys/kernel/osrelease; empty when a tree does not have it.
std::string kernel_release(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
