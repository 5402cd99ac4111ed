// SPDX-License-Identifier: Apache-2.0
// Prints what libdrm says of the machine's GPUs: run on a simulated machine by nodes_test.cpp.
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <unistd.h>
#include <xf86drm.h>

#include <array>
#include <cstdint>
#include <cstdio>

int main() {
  std::array<drmDevicePtr, 8> devices{};
  const int count = drmGetDevices2(0, devices.data(), static_cast<int>(devices.size()));
  for (int i = 0; i < count; ++i) {
    const auto* device = devices.at(static_cast<std::size_t>(i));
    const auto* pci = device->businfo.pci;
    const char* node = device->nodes[DRM_NODE_RENDER];
    std::printf("device %04x:%02x:%02x.%d %04x %s\n", pci->domain, pci->bus, pci->dev, pci->func,
                device->deviceinfo.pci->device_id, node);
    const int fd = open(node, O_RDWR | O_CLOEXEC);
    if (drmVersionPtr version = drmGetVersion(fd)) {
      std::printf("driver %s %d\n", version->name, version->version_major);
      drmFreeVersion(version);
    }
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    amdgpu_device_handle handle = nullptr;
    if (amdgpu_device_initialize(fd, &major, &minor, &handle) == 0) {
      amdgpu_gpu_info info{};
      std::uint32_t celsius = 0;
      amdgpu_query_gpu_info(handle, &info);
      amdgpu_query_sensor_info(handle, AMDGPU_INFO_SENSOR_GPU_TEMP, sizeof celsius, &celsius);
      std::printf("asic %x family %u temperature %u\n", info.asic_id, info.family_id, celsius);
      amdgpu_device_deinitialize(handle);
    }
    close(fd);
  }
  drmFreeDevices(devices.data(), count);
  return count > 0 ? 0 : 1;
}
