// SPDX-License-Identifier: Apache-2.0
#include "telemetry/drm_query.hpp"

#include <amdgpu_drm.h>
#include <fcntl.h>
#include <xf86drm.h>

#include <cerrno>

#include "core/fd.hpp"

namespace gpuhealth::telemetry {

Result<std::uint32_t> vram_losses(const std::string& node) {
  const Fd fd(open(node.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_errno("cannot open " + node, errno);
  std::uint32_t count = 0;
  drm_amdgpu_info request{};
  request.return_pointer = reinterpret_cast<std::uintptr_t>(&count);
  request.return_size = sizeof count;
  request.query = AMDGPU_INFO_VRAM_LOST_COUNTER;
  const int error = drmCommandWrite(fd.get(), DRM_AMDGPU_INFO, &request, sizeof request);
  if (error != 0) return fail_errno("cannot ask " + node + " for lost video memory", -error);
  return count;
}

}  // namespace gpuhealth::telemetry
