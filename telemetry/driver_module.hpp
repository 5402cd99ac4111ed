// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/driver_module.hpp"

namespace gpuhealth::telemetry {

// The amdgpu module. Null when SYSROOT/sys/module/amdgpu is not there: not loaded. Reads software state only.
std::optional<DriverModule> read_driver_module(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
