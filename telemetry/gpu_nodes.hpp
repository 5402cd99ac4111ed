// SPDX-License-Identifier: Apache-2.0
// Which GPU a node of /dev belongs to now, and how KFD calls the GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pci.hpp"

namespace gpuhealth::telemetry {

struct GpuNode {
  PciAddress gpu;
  bool fdinfo = false;  // may be read: the kernel's answer is known to be safe
};
struct GpuNodes {
  std::map<std::string, GpuNode> drm;        // "renderD128" -> GPU; partitions of MI300 included
  std::map<std::uint64_t, PciAddress> kfd;   // KFD's gpu_id -> GPU
  std::map<std::string, PciAddress> nvidia;  // "nvidia0" -> GPU
};
GpuNodes find_gpu_nodes(const std::string& root, const std::vector<PciAddress>& gpus);

}  // namespace gpuhealth::telemetry
