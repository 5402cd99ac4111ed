// SPDX-License-Identifier: Apache-2.0
#include "telemetry/drm_nodes.hpp"

#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "telemetry/discovery.hpp"

namespace gpuhealth::telemetry {
namespace fs = std::filesystem;
namespace {

std::string file_name(const char* path) {
  return fs::path(path).filename().string();
}

void from_libdrm(std::vector<DeviceInfo>& devices) {
  // Flags 0: asking for the revision would read configuration space, which can wake a GPU.
  std::array<drmDevicePtr, 256> found{};
  const int n = drmGetDevices2(0, found.data(), static_cast<int>(found.size()));
  if (n <= 0) return;
  for (int i = 0; i < n; ++i) {
    const auto& drm = *found[static_cast<std::size_t>(i)];
    if (drm.bustype != DRM_BUS_PCI) continue;
    const auto& bus = *drm.businfo.pci;
    const PciAddress address{bus.domain, bus.bus, bus.dev, bus.func};
    const auto it = std::ranges::find(devices, address, &DeviceInfo::pci);
    if (it == devices.end()) continue;
    if ((drm.available_nodes & (1 << DRM_NODE_PRIMARY)) != 0) it->card_node = file_name(drm.nodes[DRM_NODE_PRIMARY]);
    if ((drm.available_nodes & (1 << DRM_NODE_RENDER)) != 0) it->render_node = file_name(drm.nodes[DRM_NODE_RENDER]);
  }
  drmFreeDevices(found.data(), n);
}

void from_tree(const std::string& sysroot, DeviceInfo& device) {
  std::error_code error;
  const std::string drm = device_dir(sysroot, device.pci) + "/drm";
  for (fs::directory_iterator it(drm, error), end; !error && it != end; it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.starts_with("card") && name.find('-') == std::string::npos) device.card_node = name;
    if (name.starts_with("renderD")) device.render_node = name;
  }
}

}  // namespace

void attach_drm_nodes(const std::string& sysroot, std::vector<DeviceInfo>& devices) {
  if (sysroot.empty()) from_libdrm(devices);
  for (auto& device : devices) {
    if (device.card_node.empty() && device.render_node.empty()) from_tree(sysroot, device);
  }
}

}  // namespace gpuhealth::telemetry
