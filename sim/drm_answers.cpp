// SPDX-License-Identifier: Apache-2.0
#include "sim/drm_answers.hpp"

#include <amdgpu_drm.h>
#include <drm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace gpuhealth::sim {
namespace {

// amdgpu_drm.h of libdrm 2.4.114 ends before RDNA3.
constexpr std::uint32_t kFamilyVi = 130, kFamilyAi = 141, kFamilyNv = 143, kFamilyGc11 = 145, kFamilyGc1101 = 148,
                        kFamilyGc12 = 152;

std::uint32_t family_of(const CardModel& m) {
  const auto major = m.gfx_target_version / 10000;
  if (major >= 12) return kFamilyGc12;
  if (major == 11) return m.is_apu ? kFamilyGc1101 : kFamilyGc11;
  if (major == 10) return kFamilyNv;
  return major == 9 ? kFamilyAi : kFamilyVi;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string device_info(const Card& card) {
  const CardModel& m = card.model;
  drm_amdgpu_info_device d{};
  d.device_id = m.device_id;
  d.pci_rev = m.revision;
  d.family = family_of(m);
  d.num_shader_engines = 4;
  d.num_shader_arrays_per_engine = 2;
  d.gpu_counter_freq = 100000;
  d.max_engine_clock = std::uint64_t{m.gfx_levels_mhz.empty() ? 0 : m.gfx_levels_mhz.back()} * 1000;
  d.max_memory_clock = std::uint64_t{m.memory_levels_mhz.empty() ? 0 : m.memory_levels_mhz.back()} * 1000;
  d.cu_active_number = m.simd_count / (m.wave_size == 64 ? 4 : 2);
  d.num_rb_pipes = 8;
  d.ids_flags = m.is_apu ? AMDGPU_IDS_FLAGS_FUSION : 0;
  d.virtual_address_offset = 0x200000;
  d.virtual_address_max = 0x800000000000;
  d.virtual_address_alignment = 4096;
  d.pte_fragment_size = 2U << 20U;
  d.gart_page_size = 4096;
  d.vram_bit_width = 256;
  d.wave_front_size = m.wave_size;
  return bytes_of(d);
}

std::string memory_info(const Card& card) {
  drm_amdgpu_memory_info m{};
  const auto heap = [](drm_amdgpu_heap_info& h, std::uint64_t total, std::uint64_t used) {
    h.total_heap_size = total;
    h.usable_heap_size = total;
    h.heap_usage = std::min(used, total);
    h.max_allocation = total / 4 * 3;
  };
  heap(m.vram, card.model.vram_bytes, card.state.vram_used);
  heap(m.cpu_accessible_vram, card.model.visible_vram_bytes, card.state.vram_used);
  heap(m.gtt, card.model.gtt_bytes, card.state.gtt_used);
  return bytes_of(m);
}

// As amdgpu_kms.c: MHz, millidegrees, watts, percent, millivolts.
int sensor(std::uint32_t type, const Card& card, std::string& out) {
  const CardState& s = card.state;
  double value = 0;
  switch (type) {
    case AMDGPU_INFO_SENSOR_GFX_SCLK:
      value = s.gfx_mhz;
      break;
    case AMDGPU_INFO_SENSOR_GFX_MCLK:
      value = s.memory_mhz;
      break;
    case AMDGPU_INFO_SENSOR_GPU_TEMP:
      value = s.edge_c * 1000;
      break;
    case AMDGPU_INFO_SENSOR_GPU_LOAD:
      value = s.busy_percent;
      break;
    case AMDGPU_INFO_SENSOR_GPU_AVG_POWER:
      value = s.power_w;
      break;
    case AMDGPU_INFO_SENSOR_VDDGFX:
      value = s.gfx_mv;
      break;
    default:
      return EINVAL;
  }
  out = bytes_of(static_cast<std::uint32_t>(std::lround(value)));
  return 0;
}

int info(const Caller& caller, std::uint64_t argument, const Card& card) {
  drm_amdgpu_info request{};
  if (!caller.read(argument, &request, sizeof request)) return EFAULT;
  if (request.return_size == 0 || request.return_pointer == 0) return EINVAL;
  std::string out;
  if (const int error = answer_info(request.query, request.sensor_info.type, card, out); error != 0) return error;
  out.resize(std::min<std::size_t>(out.size(), request.return_size));
  return caller.write(request.return_pointer, out.data(), out.size()) ? 0 : EFAULT;
}

// A text in the form that DRM asks for: up to `size` bytes, and the size that it has.
bool put_text(const Caller& caller, char* to, std::size_t& size, const std::string& text) {
  const auto room = std::exchange(size, text.size());
  return to == nullptr || caller.write(reinterpret_cast<std::uint64_t>(to), text.data(), std::min(room, text.size()));
}

int version(const Caller& caller, std::uint64_t argument) {
  drm_version v{};
  if (!caller.read(argument, &v, sizeof v)) return EFAULT;
  std::size_t name = v.name_len;
  std::size_t date = v.date_len;
  std::size_t text = v.desc_len;
  if (!put_text(caller, v.name, name, "amdgpu") || !put_text(caller, v.date, date, "20150101") ||
      !put_text(caller, v.desc, text, "AMD GPU"))
    return EFAULT;
  v.version_major = 3;
  v.version_minor = 61;
  v.version_patchlevel = 0;
  v.name_len = name;
  v.date_len = date;
  v.desc_len = text;
  return caller.write(argument, &v, sizeof v) ? 0 : EFAULT;
}

int unique(const Caller& caller, std::uint64_t argument, const Card& card) {
  drm_unique u{};
  if (!caller.read(argument, &u, sizeof u)) return EFAULT;
  std::size_t size = u.unique_len;
  if (!put_text(caller, u.unique, size, "pci:" + to_string(card.place.gpu))) return EFAULT;
  u.unique_len = size;
  return caller.write(argument, &u, sizeof u) ? 0 : EFAULT;
}

int capability(const Caller& caller, std::uint64_t argument) {
  drm_get_cap cap{};
  if (!caller.read(argument, &cap, sizeof cap)) return EFAULT;
  switch (cap.capability) {
    case DRM_CAP_PRIME:
      cap.value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
      break;
    case DRM_CAP_TIMESTAMP_MONOTONIC:
    case DRM_CAP_SYNCOBJ:
    case DRM_CAP_SYNCOBJ_TIMELINE:
      cap.value = 1;
      break;
    default:
      cap.value = 0;
  }
  return caller.write(argument, &cap, sizeof cap) ? 0 : EFAULT;
}

// struct drm_client; the first client is asked for, and it is authenticated: libdrm_amdgpu wants to know.
int client_of(const Caller& caller, std::uint64_t argument) {
  drm_client c{};
  if (!caller.read(argument, &c, sizeof c)) return EFAULT;
  if (c.idx != 0) return EINVAL;
  c.auth = 1;
  return caller.write(argument, &c, sizeof c) ? 0 : EFAULT;
}

// The first four bytes of the argument become a new handle.
int new_handle(const Caller& caller, std::uint64_t argument, const DrmClient& client) {
  const std::uint32_t handle = client.next_handle++;
  return caller.write(argument, &handle, sizeof handle) ? 0 : EFAULT;
}

}  // namespace

int answer_info(std::uint32_t query, std::uint32_t detail, const Card& card, std::string& out) {
  const std::uint64_t visible = std::min(card.state.vram_used, card.model.visible_vram_bytes);
  switch (query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      out = bytes_of(std::uint32_t{1});
      return 0;
    case AMDGPU_INFO_DEV_INFO:
      out = device_info(card);
      return 0;
    case AMDGPU_INFO_MEMORY:
      out = memory_info(card);
      return 0;
    case AMDGPU_INFO_VRAM_GTT:
      out = bytes_of(
          drm_amdgpu_info_vram_gtt{card.model.vram_bytes, card.model.visible_vram_bytes, card.model.gtt_bytes});
      return 0;
    case AMDGPU_INFO_VRAM_USAGE:
      out = bytes_of(card.state.vram_used);
      return 0;
    case AMDGPU_INFO_VIS_VRAM_USAGE:
      out = bytes_of(visible);
      return 0;
    case AMDGPU_INFO_GTT_USAGE:
      out = bytes_of(card.state.gtt_used);
      return 0;
    case AMDGPU_INFO_NUM_BYTES_MOVED:
    case AMDGPU_INFO_NUM_EVICTIONS:
    case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
      out = bytes_of(std::uint64_t{0});
      return 0;
    case AMDGPU_INFO_VRAM_LOST_COUNTER:
      out = bytes_of(static_cast<std::uint32_t>(card.state.vram_losses));
      return 0;
    case AMDGPU_INFO_TIMESTAMP:
      out = bytes_of(card.state.uptime_ns / 10);  // a counter of 100 MHz
      return 0;
    case AMDGPU_INFO_SENSOR:
      return sensor(detail, card, out);
    case AMDGPU_INFO_FW_VERSION:
      out = bytes_of(drm_amdgpu_info_firmware{});
      return 0;
    case AMDGPU_INFO_HW_IP_COUNT:
      out = bytes_of(std::uint32_t{0});
      return 0;
    case AMDGPU_INFO_HW_IP_INFO:
      out = bytes_of(drm_amdgpu_info_hw_ip{});
      return 0;
    case AMDGPU_INFO_READ_MMR_REG:
      out.assign(256, '\0');
      return 0;
    default:
      return EINVAL;
  }
}

int answer_drm(const Caller& caller, std::uint32_t request, std::uint64_t argument, const DrmClient& client) {
  switch (request) {
    case DRM_IOCTL_VERSION:
      return version(caller, argument);
    case DRM_IOCTL_GET_UNIQUE:
      return unique(caller, argument, client.card);
    case DRM_IOCTL_GET_CAP:
      return capability(caller, argument);
    case DRM_IOCTL_GET_CLIENT:
      return client_of(caller, argument);
    case DRM_IOCTL_AMDGPU_INFO:
      return info(caller, argument, client.card);
    case DRM_IOCTL_AMDGPU_GEM_CREATE:
    case DRM_IOCTL_AMDGPU_CTX:
      return new_handle(caller, argument, client);
    case DRM_IOCTL_SET_VERSION:
    case DRM_IOCTL_SET_CLIENT_CAP:
    case DRM_IOCTL_GEM_CLOSE:
    case DRM_IOCTL_AMDGPU_GEM_VA:
    case DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE:
      return 0;
    case DRM_IOCTL_AMDGPU_CS:
    case DRM_IOCTL_AMDGPU_GEM_MMAP:
      return ENODEV;
    default:
      return EINVAL;
  }
}

}  // namespace gpuhealth::sim
