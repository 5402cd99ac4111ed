// SPDX-License-Identifier: Apache-2.0
// Which link is the slot's: since Navi 10 (and on Vega 10/20) the GPU sits behind a switch on its own card, and its own
// link is on the board and always at its maximum. The real one is between the upstream port of that switch and the
// slot. Rule: amdgpu_device_partner_bandwidth (skip parents of vendor 1002), and 1022:1470/1471, the bridges of Vega 10
// boards. Intel's: 8086:4fa0, 4fa1, 4fa4 of Arc A, e2f0, e2f1, e2ff of Arc B (pci.ids).
#pragma once

#include <string>
#include <vector>

namespace gpuhealth::telemetry {

struct PcieChain {
  std::string card_end;      // directory of the port that faces the slot (the GPU itself when there is no switch)
  std::string platform_end;  // directory of the slot's port; empty when the tree does not show it
  std::vector<std::string> aer_sources;  // GPU, its switch ports, the slot's port: errors may be counted on any of them
};

// `device_dir` is the GPU function's directory, links allowed.
PcieChain find_pcie_chain(const std::string& device_dir);

}  // namespace gpuhealth::telemetry
