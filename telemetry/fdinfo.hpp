// SPDX-License-Identifier: Apache-2.0
// What the kernel says of one open DRM file: /proc/PID/fdinfo/FD. Source: Documentation/gpu/drm-usage-stats.rst and
// amdgpu_fdinfo.c (drm-memory-* up to 6.11, drm-resident-* beside it since).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpuhealth::telemetry {

struct DrmFdinfo {
  std::string driver;                              // empty: the file is no DRM client's
  std::string pci;                                 // "0000:03:00.0"; empty for a device that is not on PCI
  std::string client_id;                           // of descriptors that were passed on or duplicated it is the same
  std::map<std::string, std::uint64_t> engine_ns;  // "gfx" -> 1234
  std::optional<std::uint64_t> vram_bytes;
  std::optional<std::uint64_t> gtt_bytes;
  std::uint64_t evicted_bytes = 0;
};
DrmFdinfo parse_drm_fdinfo(std::string_view text);

}  // namespace gpuhealth::telemetry
