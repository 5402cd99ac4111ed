// SPDX-License-Identifier: Apache-2.0
// Names of the bus interface; the XML beside this file is the contract.
#pragma once

#include <string>
#include <string_view>

namespace gpuhealth::dbus {

inline constexpr const char kBusName[] = "org.gpuhealth1";
inline constexpr const char kRootPath[] = "/org/gpuhealth1";
inline constexpr const char kDevicePrefix[] = "/org/gpuhealth1/device";
inline constexpr const char kConditionPrefix[] = "/org/gpuhealth1/condition";
inline constexpr const char kManagerInterface[] = "org.gpuhealth1.Manager";
inline constexpr const char kDeviceInterface[] = "org.gpuhealth1.Device";
inline constexpr const char kConditionInterface[] = "org.gpuhealth1.Condition";
inline constexpr const char kPolkitManageDevice[] = "org.gpuhealth1.device.manage";

// "/org/gpuhealth1/device/0000_3a03_3a00_2e0"-style: sd_bus_path_encode of the id below the prefix.
std::string device_path(std::string_view device_id);
std::string condition_path(std::string_view condition_id);

}  // namespace gpuhealth::dbus
