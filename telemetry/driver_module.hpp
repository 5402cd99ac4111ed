// SPDX-License-Identifier: Apache-2.0
// The amdgpu kernel module as it is loaded: part of what "the software was" when something was measured.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace gpuhealth::telemetry {

struct DriverModule {
  std::string version;                            // DKMS builds have one; empty in-tree
  std::string srcversion;                         // hash of its sources; empty when built in
  std::map<std::string, std::string> parameters;  // "runpm" -> "-1"; those that may be read
};

// Null when SYSROOT/sys/module/amdgpu is not there: not loaded. Reads software state only.
std::optional<DriverModule> read_driver_module(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
