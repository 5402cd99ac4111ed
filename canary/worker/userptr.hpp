// SPDX-License-Identifier: Apache-2.0
// T0: the kernel's own path that pins host memory for an AMD GPU, through a render node alone: no runtime, no video
// memory, no kernel on the GPU. It is the function that the host-copy stall is in.
#pragma once

#include <string>
#include <vector>

#include "canary/worker/host_memory.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/pci.hpp"

namespace gpuhealth::canary {

struct RenderNode {
  std::string path;  // "/dev/dri/renderD128"
  std::string pci;   // "0000:03:00.0"; empty when the kernel does not say
  Fd fd;
};
// amdgpu's render nodes; sleeping ones are left closed. NotFound says what was there instead.
Result<std::vector<RenderNode>> open_amdgpu_nodes(const std::optional<PciAddress>& device);

// Registers and validates a range with write intent, and closes the handle again.
Pin userptr_pin(int render_node);

}  // namespace gpuhealth::canary
