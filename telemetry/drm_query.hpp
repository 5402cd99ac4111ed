// SPDX-License-Identifier: Apache-2.0
// What only amdgpu's ioctls say (amdgpu_drm.h, AMDGPU_INFO). Opening a render node wakes the GPU: of an awake one only,
// now and then, and nothing stays open.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace gpuhealth::telemetry {

// How often the content of video memory was lost since the driver was loaded; `node`: "/dev/dri/renderD128". The errno
// is in the error.
Result<std::uint32_t> vram_losses(const std::string& node);

}  // namespace gpuhealth::telemetry
