// SPDX-License-Identifier: Apache-2.0
// A stand-in OpenCL driver (ICD) for simulated machines: pocl under the name and the PCI address of a simulated card.
// What a copy to the device needs of the kernel it asks of the card's render node, as AMD's runtime does: pinning of
// the host's memory. All else is pocl's, on the processor. Reads the file "card" beside it: name, address, node.
#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "canary/worker/opencl_api.hpp"

namespace cl = gpuhealth::canary::cl;
namespace {

#define EXPORTED extern "C" __attribute__((visibility("default")))

constexpr cl::Int kInvalidValue = -30;
constexpr cl::ULong kDeviceTypeGpu = 1U << 2U;
// Small, so that canaries are short on a processor: their sets follow from both.
constexpr cl::ULong kMemory = 256ULL << 20U;
constexpr cl::UInt kUnits = 1;
constexpr cl::UInt kMostAttempts = 1000;
constexpr std::size_t kPinnedFrom = 1U << 20U;  // smaller copies are staged
constexpr std::uintptr_t kPage = 4096;

// Places in the table of functions that every ICD's objects begin with (Khronos' cl_icd.h).
enum Place : std::size_t {
  kGetPlatformInfo = 1,
  kGetDeviceIds = 2,
  kGetDeviceInfo = 3,
  kEnqueueWriteBuffer = 49,
  kPlaces = 50
};
using Table = std::array<void*, kPlaces>;

struct StandIn {
  std::string name = "simulated card";
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int node = -1;
  void* pocl = nullptr;
  Table original{};
};

StandIn& self() {
  static StandIn one = [] {
    StandIn s;
    Dl_info where{};
    dladdr(reinterpret_cast<void*>(&self), &where);
    std::string folder = where.dli_fname == nullptr ? "" : where.dli_fname;
    folder.erase(folder.rfind('/') + 1);
    std::ifstream in(folder + "card");
    std::string address;
    std::string node;
    std::getline(in, s.name);
    std::getline(in, address);
    std::getline(in, node);
    std::sscanf(address.c_str(), "%x:%x:%x.%x", &s.domain, &s.bus, &s.device, &s.function);
    s.node = open(node.c_str(), O_RDWR | O_CLOEXEC);
    for (const char* library : {"libpocl.so.2", "libpocl.so"}) {
      if (s.pocl == nullptr) s.pocl = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    }
    return s;
  }();
  return one;
}

template <class Function>
Function* original(Place place) {
  return reinterpret_cast<Function*>(self().original.at(place));
}

cl::Int give(const void* value, std::size_t size, std::size_t room, void* to, std::size_t* needed) {
  if (needed != nullptr) *needed = size;
  if (to == nullptr) return cl::kSuccess;
  if (room < size) return kInvalidValue;
  std::memcpy(to, value, size);
  return cl::kSuccess;
}

cl::Int give(const std::string& text, std::size_t room, void* to, std::size_t* needed) {
  return give(text.c_str(), text.size() + 1, room, to, needed);
}

using InfoFunction = cl::Int(void*, cl::UInt, std::size_t, void*, std::size_t*);

cl::Int get_platform_info(void* platform, cl::UInt what, std::size_t room, void* to, std::size_t* needed) {
  if (what == cl::kPlatformName) return give("gpuhealth-sim stand-in over pocl (simulated)", room, to, needed);
  return original<InfoFunction>(kGetPlatformInfo)(platform, what, room, to, needed);
}

cl::Int get_device_ids(void* platform, cl::ULong type, cl::UInt room, void** to, cl::UInt* count) {
  if ((type & kDeviceTypeGpu) != 0) type = cl::kDeviceTypeAll;
  return original<cl::Int(void*, cl::ULong, cl::UInt, void**, cl::UInt*)>(kGetDeviceIds)(platform, type, room, to,
                                                                                         count);
}

cl::Int get_device_info(void* device, cl::UInt what, std::size_t room, void* to, std::size_t* needed) {
  auto* const pocl = original<InfoFunction>(kGetDeviceInfo);
  const auto& s = self();
  switch (what) {
    case cl::kDeviceType:
      return give(&kDeviceTypeGpu, sizeof kDeviceTypeGpu, room, to, needed);
    case cl::kDeviceName:
      return give(s.name, room, to, needed);
    case cl::kDeviceVendor:
      return give("gpuhealth-sim", room, to, needed);
    case cl::kDeviceGlobalMemSize:
      return give(&kMemory, sizeof kMemory, room, to, needed);
    case cl::kDeviceMaxComputeUnits:
      return give(&kUnits, sizeof kUnits, room, to, needed);
    case cl::kDevicePciBusInfoKhr: {
      const std::array<cl::UInt, 4> address = {s.domain, s.bus, s.device, s.function};
      return give(address.data(), sizeof address, room, to, needed);
    }
    case cl::kDeviceExtensions: {
      std::array<char, 16384> text{};
      const cl::Int code = pocl(device, what, text.size() - 1, text.data(), nullptr);
      return code != cl::kSuccess ? code : give(std::string(text.data()) + " cl_khr_pci_bus_info", room, to, needed);
    }
    default:
      return pocl(device, what, room, to, needed);
  }
}

bool is_writable(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    std::array<char, 8> access{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &last, access.data()) == 3 && address >= first &&
        address < last)
      return access[1] == 'w';
  }
  return false;
}

// As kfd_svm and the runtime's pinned copies: write intent wherever the mapping allows it, again while the kernel says
// so, and staged when it will not.
void pin(const void* memory, std::size_t bytes) {
  if (self().node < 0 || bytes < kPinnedFrom) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory) / kPage * kPage;
  const auto last = (reinterpret_cast<std::uintptr_t>(memory) + bytes + kPage - 1) / kPage * kPage;
  drm_amdgpu_gem_userptr request{};
  request.addr = first;
  request.size = last - first;
  request.flags = AMDGPU_GEM_USERPTR_VALIDATE | AMDGPU_GEM_USERPTR_REGISTER;
  if (!is_writable(first)) request.flags |= AMDGPU_GEM_USERPTR_READONLY;
  int result = -1;
  for (cl::UInt attempt = 0; result != 0 && attempt < kMostAttempts; ++attempt) {
    result = ioctl(self().node, DRM_IOCTL_AMDGPU_GEM_USERPTR, &request);
    if (result != 0 && errno != EAGAIN && errno != EINTR) return;
  }
  drm_gem_close close{request.handle, 0};
  if (result == 0) ioctl(self().node, DRM_IOCTL_GEM_CLOSE, &close);
}

cl::Int enqueue_write_buffer(cl::Queue queue, cl::Mem to, cl::UInt blocking, std::size_t offset, std::size_t bytes,
                             const void* from, cl::UInt waits, const cl::EventId* wait_for, cl::EventId* event) {
  pin(from, bytes);
  return original<decltype(enqueue_write_buffer)>(kEnqueueWriteBuffer)(queue, to, blocking, offset, bytes, from, waits,
                                                                       wait_for, event);
}

// Our functions in the place of pocl's, in the one table that all of its objects refer to.
void take_over(void* platform) {
  if (self().original[kGetDeviceInfo] != nullptr) return;
  void** table = *static_cast<void***>(platform);
  std::copy_n(table, kPlaces, self().original.begin());
  const auto first = reinterpret_cast<std::uintptr_t>(table) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(table) + sizeof(Table);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  mprotect(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE);
  table[kGetPlatformInfo] = reinterpret_cast<void*>(&get_platform_info);
  table[kGetDeviceIds] = reinterpret_cast<void*>(&get_device_ids);
  table[kGetDeviceInfo] = reinterpret_cast<void*>(&get_device_info);
  table[kEnqueueWriteBuffer] = reinterpret_cast<void*>(&enqueue_write_buffer);
}

void* of_pocl(const char* name) {
  return self().pocl == nullptr ? nullptr : dlsym(self().pocl, name);
}

}  // namespace

EXPORTED cl::Int clIcdGetPlatformIDsKHR(cl::UInt room, void** platforms, cl::UInt* count) {
  using Get = cl::Int(cl::UInt, void**, cl::UInt*);
  using Lookup = void*(const char*);
  auto* lookup = reinterpret_cast<Lookup*>(of_pocl("clGetExtensionFunctionAddress"));
  auto* get = lookup == nullptr ? nullptr : reinterpret_cast<Get*>(lookup("clIcdGetPlatformIDsKHR"));
  void* first = nullptr;
  if (get == nullptr || get(1, &first, nullptr) != cl::kSuccess || first == nullptr) return cl::kPlatformNotFound;
  take_over(first);
  return get(room, platforms, count);
}

EXPORTED void* clGetExtensionFunctionAddress(const char* name) {
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR);
  auto* lookup = reinterpret_cast<void* (*)(const char*)>(of_pocl("clGetExtensionFunctionAddress"));
  return lookup == nullptr ? nullptr : lookup(name);
}

EXPORTED cl::Int clGetPlatformInfo(void* platform, cl::UInt what, std::size_t room, void* to, std::size_t* needed) {
  return get_platform_info(platform, what, room, to, needed);
}
