// SPDX-License-Identifier: Apache-2.0
// What amdgpu's DRM ioctls say of a card, as far as libdrm, libdrm_amdgpu and the canaries ask. Command submission and
// memory that is mapped are not simulated: ENODEV.
#pragma once

#include <cstdint>
#include <string>

#include "sim/caller.hpp"
#include "sim/card.hpp"

namespace gpuhealth::sim {

struct DrmClient {
  const Card& card;
  std::uint32_t& next_handle;
};

// 0, or an errno. DRM_AMDGPU_GEM_USERPTR is not among them: userptr.hpp.
int answer_drm(const Caller& caller, std::uint32_t request, std::uint64_t argument, const DrmClient& client);

// The bytes of one info query; `detail` is the sensor.
int answer_info(std::uint32_t query, std::uint32_t detail, const Card& card, std::string& out);

}  // namespace gpuhealth::sim
