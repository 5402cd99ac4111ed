// SPDX-License-Identifier: Apache-2.0
#include "telemetry/pcie_link.hpp"

#include <filesystem>
#include <system_error>

#include "core/pci.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

bool is_on_card(const std::string& bridge_dir) {
  const auto vendor = parse_hex(read_text_or_empty(bridge_dir + "/vendor"));
  const auto device = parse_hex(read_text_or_empty(bridge_dir + "/device"));
  if (vendor == 0x1002u) return true;
  if (vendor == 0x8086u)
    return device == 0x4fa0u || device == 0x4fa1u || device == 0x4fa4u || device == 0xe2ffu || device == 0xe2f0u ||
           device == 0xe2f1u;
  return vendor == 0x1022u && (device == 0x1470u || device == 0x1471u);
}

}  // namespace

PcieChain find_pcie_chain(const std::string& device_dir) {
  std::error_code error;
  const auto real = std::filesystem::canonical(device_dir, error);
  PcieChain chain;
  chain.card_end = error ? device_dir : real.string();
  chain.aer_sources.push_back(chain.card_end);
  if (error) return chain;
  for (auto parent = real.parent_path(); parse_pci_address(parent.filename().string()); parent = parent.parent_path()) {
    chain.aer_sources.push_back(parent.string());
    if (!is_on_card(parent.string())) {
      chain.platform_end = parent.string();
      break;
    }
    chain.card_end = parent.string();
  }
  return chain;
}

}  // namespace gpuhealth::telemetry
