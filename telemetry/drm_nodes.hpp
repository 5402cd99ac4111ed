// SPDX-License-Identifier: Apache-2.0
// Which DRM nodes a GPU has at this moment, from libdrm's drmGetDevices2 (it opens no node, so it wakes nothing), or
// from the tree itself when that is not this machine's.
#pragma once

#include <string>
#include <vector>

#include "core/device.hpp"

namespace gpuhealth::telemetry {

void attach_drm_nodes(const std::string& sysroot, std::vector<DeviceInfo>& devices);

}  // namespace gpuhealth::telemetry
