// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_nodes.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "telemetry/discovery.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/quirks.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace fs = std::filesystem;
namespace {

// The name of the folder that a link leads to.
std::string name_of_target(const fs::path& link) {
  std::error_code error;
  const auto target = fs::canonical(link, error);
  return error ? std::string() : target.filename().string();
}

// The last name in a link's text: the driver's folder need not be in a captured tree.
std::string name_in_link(const fs::path& link) {
  std::error_code error;
  const auto target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().string();
}

// "Device Minor: 	 0" of /proc/driver/nvidia/gpus/ADDRESS/information.
std::optional<int> nvidia_minor(const std::string& root, const PciAddress& gpu) {
  const auto text = read_text_or_empty(root + "/proc/driver/nvidia/gpus/" + to_string(gpu) + "/information");
  const auto at = text.find("Device Minor:");
  int minor = -1;
  if (at == std::string::npos || std::sscanf(text.c_str() + at, "Device Minor: %d", &minor) != 1) return std::nullopt;
  return minor;
}

}  // namespace

GpuNodes find_gpu_nodes(const std::string& root, const std::vector<PciAddress>& gpus) {
  GpuNodes out;
  const bool sound = !quirk_applies(QuirkId::FdinfoMayCrash, AsicFamily::Unknown, kernel_release(root));
  std::map<std::int32_t, PciAddress> by_minor;
  for (const auto& card : kfd_cards(read_kfd_topology(root), gpus)) {
    if (std::ranges::find(gpus, card.pci) == gpus.end()) continue;
    for (const auto& node : card.nodes) {
      if (node.gpu_id != 0) out.kfd[node.gpu_id] = card.pci;
      if (node.render_minor > 0) by_minor[node.render_minor] = card.pci;
    }
  }
  const fs::path drm = root + "/sys/class/drm";
  std::error_code error;
  for (fs::directory_iterator it(drm, error), end; !error && it != end; it.increment(error)) {
    const auto name = it->path().filename().string();
    const bool render = name.starts_with("renderD");
    if (!render && (!name.starts_with("card") || name.find('-') != std::string::npos)) continue;
    auto gpu = parse_pci_address(name_of_target(it->path() / "device"));
    int minor = 0;
    if (!gpu && render && std::sscanf(name.c_str(), "renderD%d", &minor) == 1 && by_minor.contains(minor))
      gpu = by_minor[minor];  // a partition: its device is no PCI function
    if (!gpu || std::ranges::find(gpus, *gpu) == gpus.end()) continue;
    const bool amdgpu = name_in_link(device_dir(root, *gpu) + "/driver") == "amdgpu";
    out.drm[name] = {*gpu, !amdgpu || sound};
  }
  for (const auto& gpu : gpus) {
    if (const auto n = nvidia_minor(root, gpu)) out.nvidia["nvidia" + std::to_string(*n)] = gpu;
  }
  return out;
}

}  // namespace gpuhealth::telemetry
