// SPDX-License-Identifier: Apache-2.0
// CUDA's driver API and HIP's module API are the same calls by other names: one table, filled from either library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "canary/worker/gpu.hpp"

namespace gpuhealth::canary {

using Code = int;
using DevicePtr = std::uint64_t;
using Handle = void*;

// FUNCTION(member, CUDA's name, HIP's name, parameters); all return a code, 0 is success.
#define GH_DRIVER_FUNCTIONS(FUNCTION)                                                                                \
  FUNCTION(init, "cuInit", "hipInit", (unsigned))                                                                    \
  FUNCTION(device_count, "cuDeviceGetCount", "hipGetDeviceCount", (int*))                                            \
  FUNCTION(device_get, "cuDeviceGet", "hipDeviceGet", (int*, int))                                                   \
  FUNCTION(device_name, "cuDeviceGetName", "hipDeviceGetName", (char*, int, int))                                    \
  FUNCTION(device_pci, "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (char*, int, int))                             \
  FUNCTION(memory_info, "cuMemGetInfo_v2", "hipMemGetInfo", (std::size_t*, std::size_t*))                            \
  FUNCTION(allocate, "cuMemAlloc_v2", "hipMalloc", (DevicePtr*, std::size_t))                                        \
  FUNCTION(release, "cuMemFree_v2", "hipFree", (DevicePtr))                                                          \
  FUNCTION(unpin, "cuMemFreeHost", "hipHostFree", (void*))                                                           \
  FUNCTION(write, "cuMemcpyHtoD_v2", "hipMemcpyHtoD", (DevicePtr, const void*, std::size_t))                         \
  FUNCTION(read, "cuMemcpyDtoH_v2", "hipMemcpyDtoH", (void*, DevicePtr, std::size_t))                                \
  FUNCTION(write_async, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (DevicePtr, const void*, std::size_t, Handle)) \
  FUNCTION(read_async, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (void*, DevicePtr, std::size_t, Handle))        \
  FUNCTION(stream_create, "cuStreamCreateWithPriority", "hipStreamCreateWithPriority", (Handle*, unsigned, int))     \
  FUNCTION(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize", (Handle))                                     \
  FUNCTION(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", (Handle))                                       \
  FUNCTION(event_create, "cuEventCreate", "hipEventCreateWithFlags", (Handle*, unsigned))                            \
  FUNCTION(event_record, "cuEventRecord", "hipEventRecord", (Handle, Handle))                                        \
  FUNCTION(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime", (float*, Handle, Handle))                     \
  FUNCTION(event_destroy, "cuEventDestroy_v2", "hipEventDestroy", (Handle))                                          \
  FUNCTION(module_load, "cuModuleLoadData", "hipModuleLoadData", (Handle*, const void*))                             \
  FUNCTION(module_unload, "cuModuleUnload", "hipModuleUnload", (Handle))                                             \
  FUNCTION(module_function, "cuModuleGetFunction", "hipModuleGetFunction", (Handle*, Handle, const char*))           \
  FUNCTION(launch, "cuLaunchKernel", "hipModuleLaunchKernel",                                                        \
           (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**))

struct DriverApi {
#define GH_DRIVER_MEMBER(member, cuda, hip, parameters) Code(*member) parameters = nullptr;
  GH_DRIVER_FUNCTIONS(GH_DRIVER_MEMBER)
#undef GH_DRIVER_MEMBER
};
enum class Vendor : std::uint8_t { Cuda, Hip };
// What is missing is named.
Result<DriverApi> load_driver_api(const Library& library, Vendor vendor);

// What the two do differently.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;
  DriverApi api;
  virtual Code enter(int device) = 0;  // makes the device current
  virtual Code pin(void** memory, std::size_t bytes) = 0;
  virtual std::string error_text(Code code) = 0;
  virtual int lowest_priority() = 0;
  virtual Result<Handle> kernels(const Facts& facts) = 0;  // a loaded module
  virtual bool build(unsigned nonce) = 0;
  virtual Handle mma() { return nullptr; }
  virtual std::optional<double> peer_copy(int /*device*/, std::size_t /*bytes*/) { return std::nullopt; }
};
std::unique_ptr<Gpu> make_driver_gpu(std::unique_ptr<Driver> driver, Facts facts, int device);
// "no device" or the one that was asked for, with its PCI address and name in `facts`.
Result<int> choose_device(const DriverApi& api, const Selection& selection, Facts& facts, const char* runtime);

}  // namespace gpuhealth::canary
