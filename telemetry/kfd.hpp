// SPDX-License-Identifier: Apache-2.0
// The compute driver's topology, /sys/class/kfd/kfd/topology/nodes/N: which nodes a GPU has, what they are and how GPUs
// are linked. Software state; reading it wakes nothing. Source: kfd_topology.c, kfd_crat.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.hpp"

namespace gpuhealth::telemetry {

enum class KfdLinkType : std::uint8_t { Other, Pcie, Xgmi };

struct KfdLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  KfdLinkType type = KfdLinkType::Other;
};
// An io_links or p2p_links "properties" file; null for text that names no two nodes.
std::optional<KfdLink> parse_kfd_link(std::string_view text);

struct KfdNode {
  std::uint32_t node = 0;
  std::uint64_t gpu_id = 0;
  std::uint32_t gfx_target_version = 0;  // 90402
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t simd_count = 0;  // 0: a CPU
  std::uint32_t simd_per_cu = 0;
  std::uint32_t location_id = 0;
  std::uint32_t domain = 0;
  std::uint32_t num_xcc = 0;
  std::int32_t render_minor = -1;
  std::uint64_t hive_id = 0;    // of GPUs linked by XGMI; 0: none
  std::uint64_t unique_id = 0;  // of the card: partitions share it
  std::vector<KfdLink> links;
  [[nodiscard]] bool is_gpu() const { return simd_count > 0; }
};
// A node's "properties": lines of key and number, unknown ones left out. Null where nothing of it is of that form.
std::optional<KfdNode> parse_kfd_node(std::string_view text);

// 90402 -> "gfx942", 90010 -> "gfx90a", 110000 -> "gfx1100"; empty for 0.
std::string gfx_name(std::uint32_t gfx_target_version);

// Where the node's card is: bus and device of location_id. Its function is the partition's number on MI300; newer
// kernels have that in the top four bits.
PciAddress kfd_address(const KfdNode& node);

// By node number; empty where there is no KFD. Nodes whose properties cannot be read (a container's device rules) are
// left out.
std::vector<KfdNode> read_kfd_topology(const std::string& sysroot);

// One card of the topology: its nodes by partition.
struct KfdCard {
  PciAddress pci;
  std::uint64_t unique_id = 0;
  std::uint64_t hive_id = 0;
  std::uint32_t device_id = 0;
  std::vector<ComputeNode> nodes;
  std::vector<PciAddress> xgmi_peers;
};
// `known`: the functions that the bus has; without them every card is at function 0.
std::vector<KfdCard> kfd_cards(const std::vector<KfdNode>& nodes, const std::vector<PciAddress>& known = {});

// Gives each device its nodes, links and partition modes.
void attach_compute_nodes(const std::string& sysroot, std::vector<DeviceInfo>& devices);

}  // namespace gpuhealth::telemetry
