// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/snapshot.hpp"

namespace gpuhealth::policy {
namespace {

bool any_matches(const std::vector<std::string>& patterns, std::string_view text) {
  return std::ranges::any_of(patterns, [&](const std::string& p) { return matches(p, text); });
}

bool wants(const std::vector<std::string>& patterns, std::string_view text) {
  return patterns.empty() || (!text.empty() && any_matches(patterns, text));
}

}  // namespace

bool machine_matches(const Targets& targets, const MachineFacts& machine) {
  if (!wants(targets.host, machine.host) || !wants(targets.kernel, machine.kernel)) return false;
  if (!wants(targets.distribution, machine.distribution) &&
      !wants(targets.distribution, machine.distribution + " " + machine.version))
    return false;
  return std::ranges::all_of(targets.labels, [&](const auto& label) {
    const auto it = machine.labels.find(label.first);
    return it != machine.labels.end() && matches(label.second, it->second);
  });
}

bool gpu_matches(const Targets& targets, const DeviceState& device) {
  if (targets.any_gpu()) return true;
  if (!targets.vendor.empty() && std::ranges::find(targets.vendor, device.vendor) == targets.vendor.end()) return false;
  if (!wants(targets.gfx, device.gfx)) return false;
  if (!targets.sku.empty() &&
      !std::ranges::any_of(device.skus, [&](const std::string& sku) { return any_matches(targets.sku, sku); }))
    return false;
  if (!targets.vram_at_least && !targets.vram_at_most) return true;
  return device.vram && *device.vram >= targets.vram_at_least.value_or(0) &&
         (!targets.vram_at_most || *device.vram <= *targets.vram_at_most);
}

std::string_view vendor_name(std::uint16_t vendor_id) {
  switch (vendor_id) {
    case 0x1002:
      return "amd";
    case 0x10de:
      return "nvidia";
    case 0x8086:
      return "intel";
    default:
      return "";
  }
}

}  // namespace gpuhealth::policy
