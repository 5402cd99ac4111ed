// SPDX-License-Identifier: Apache-2.0
// The KFD topology of a synthetic machine: node 0 is the processor, one node for each GPU that has its driver.
// librocm_smi64 finds GPUs through it (location_id, io_links).
#pragma once

#include <optional>

#include "sim/card.hpp"
#include "sim/folder.hpp"

namespace gpuhealth::sim {

void write_kfd_root(Folder& sys);
void write_kfd_node(Folder& sys, const Card& card, unsigned node, unsigned render_minor);
// KFD's name of the GPU; nothing where it has no node.
std::optional<unsigned> kfd_gpu_id(const std::filesystem::path& sys, const PciAddress& gpu);
void remove_kfd_node(const std::filesystem::path& sys, const PciAddress& gpu);

}  // namespace gpuhealth::sim
