// SPDX-License-Identifier: Apache-2.0
// Names of the bus interface; the XML beside this file is the contract.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace gpuhealth::dbus {

inline constexpr const char kBusName[] = "org.gpuhealth1";
inline constexpr const char kRootPath[] = "/org/gpuhealth1";
inline constexpr const char kDevicePrefix[] = "/org/gpuhealth1/device";
inline constexpr const char kConditionPrefix[] = "/org/gpuhealth1/condition";
inline constexpr const char kActionPrefix[] = "/org/gpuhealth1/action";
inline constexpr const char kJobPrefix[] = "/org/gpuhealth1/job";
inline constexpr const char kCanaryPath[] = "/org/gpuhealth1/canary";
inline constexpr const char kKernelPath[] = "/org/gpuhealth1/kernel";
inline constexpr const char kManagerInterface[] = "org.gpuhealth1.Manager";
inline constexpr const char kDeviceInterface[] = "org.gpuhealth1.Device";
inline constexpr const char kConditionInterface[] = "org.gpuhealth1.Condition";
inline constexpr const char kKernelInterface[] = "org.gpuhealth1.Kernel";
inline constexpr const char kActionInterface[] = "org.gpuhealth1.Action";
inline constexpr const char kCanaryInterface[] = "org.gpuhealth1.Canary";
inline constexpr const char kJobInterface[] = "org.gpuhealth1.Job";
inline constexpr const char kPolkitRunCanary[] = "org.gpuhealth1.canary.run";
inline constexpr const char kPolkitManagePolicy[] = "org.gpuhealth1.policy.manage";
inline constexpr const char kPolkitManageDevice[] = "org.gpuhealth1.device.manage";
inline constexpr const char kPolkitManageKernel[] = "org.gpuhealth1.kernel.manage";

// What one answer holds at most; who asks for more gets this many.
inline constexpr std::uint32_t kMaxHistoryPoints = 4096;
inline constexpr std::uint32_t kMaxEvents = 4096;
inline constexpr std::uint32_t kMaxPastConditions = 1024;

// "/org/gpuhealth1/device/uid_2d49afc8b43a8a6d30"-style: sd_bus_path_encode of the id below the prefix.
std::string device_path(std::string_view device_id);
std::string condition_path(std::string_view condition_id);
std::string action_path(std::string_view action_id);
std::string job_path(std::string_view job_id);

// "org.gpuhealth1.Error.NotFound"; and back, also from the errors that a bus, polkit or sd-bus itself answers with.
const char* error_name(ErrorCode code);
ErrorCode error_code(std::string_view dbus_error_name);

}  // namespace gpuhealth::dbus
