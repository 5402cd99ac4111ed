// SPDX-License-Identifier: Apache-2.0
// The part of OpenCL 1.2 that is used, declared here so that nothing need be installed; values from the Khronos
// registry.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuhealth::canary::cl {

using Int = std::int32_t;
using UInt = std::uint32_t;
using ULong = std::uint64_t;
using Platform = struct PlatformTag*;
using Device = struct DeviceTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Program = struct ProgramTag*;
using KernelId = struct KernelTag*;
using Mem = struct MemTag*;
using EventId = struct EventTag*;

inline constexpr Int kSuccess = 0;
inline constexpr Int kDeviceNotFound = -1;
inline constexpr Int kPlatformNotFound = -1001;
inline constexpr ULong kDeviceTypeCpu = 1U << 1U;
inline constexpr ULong kDeviceTypeAll = 0xffffffff;
inline constexpr UInt kPlatformName = 0x0902;
inline constexpr UInt kDeviceType = 0x1000;
inline constexpr UInt kDeviceMaxComputeUnits = 0x1002;
inline constexpr UInt kDeviceGlobalMemCacheSize = 0x101E;
inline constexpr UInt kDeviceGlobalMemSize = 0x101F;
inline constexpr UInt kDeviceMaxMemAllocSize = 0x1010;
inline constexpr UInt kDeviceName = 0x102B;
inline constexpr UInt kDeviceVendor = 0x102C;
inline constexpr UInt kDriverVersion = 0x102D;
inline constexpr UInt kDeviceVersion = 0x102F;
inline constexpr UInt kDeviceExtensions = 0x1030;
inline constexpr UInt kDevicePciBusInfoKhr = 0x410F;  // four UInt: domain, bus, device, function
inline constexpr UInt kDevicePciBusIdNv = 0x4008;
inline constexpr UInt kDevicePciSlotIdNv = 0x4009;  // device << 3 | function
inline constexpr UInt kDevicePciDomainIdNv = 0x400A;
inline constexpr UInt kDeviceTopologyAmd = 0x4037;          // 24 bytes: type, 17 unused, bus, device, function
inline constexpr UInt kDeviceGlobalFreeMemoryAmd = 0x4039;  // KiB
inline constexpr UInt kDeviceComputeCapabilityMajorNv = 0x4000;
inline constexpr ULong kQueueProfiling = 1U << 1U;
inline constexpr UInt kQueueProperties = 0x1093;
inline constexpr UInt kQueuePriorityKhr = 0x1096;
inline constexpr ULong kQueuePriorityLowKhr = 1U << 2U;
inline constexpr ULong kMemReadWrite = 1U << 0U;
inline constexpr ULong kMemAllocHostPtr = 1U << 4U;
inline constexpr ULong kMapReadWrite = 3;
inline constexpr UInt kProgramBuildLog = 0x1183;
inline constexpr UInt kProfilingStart = 0x1282;
inline constexpr UInt kProfilingEnd = 0x1283;

// Every entry point that is needed: FUNCTION(result, name, parameters).
#define GH_CL_FUNCTIONS(FUNCTION)                                                                                    \
  FUNCTION(Int, clGetPlatformIDs, (UInt, Platform*, UInt*))                                                          \
  FUNCTION(Int, clGetPlatformInfo, (Platform, UInt, std::size_t, void*, std::size_t*))                               \
  FUNCTION(Int, clGetDeviceIDs, (Platform, ULong, UInt, Device*, UInt*))                                             \
  FUNCTION(Int, clGetDeviceInfo, (Device, UInt, std::size_t, void*, std::size_t*))                                   \
  FUNCTION(Context, clCreateContext, (const std::intptr_t*, UInt, const Device*, void*, void*, Int*))                \
  FUNCTION(Queue, clCreateCommandQueue, (Context, Device, ULong, Int*))                                              \
  FUNCTION(Program, clCreateProgramWithSource, (Context, UInt, const char**, const std::size_t*, Int*))              \
  FUNCTION(Int, clBuildProgram, (Program, UInt, const Device*, const char*, void*, void*))                           \
  FUNCTION(Int, clGetProgramBuildInfo, (Program, Device, UInt, std::size_t, void*, std::size_t*))                    \
  FUNCTION(KernelId, clCreateKernel, (Program, const char*, Int*))                                                   \
  FUNCTION(Int, clSetKernelArg, (KernelId, UInt, std::size_t, const void*))                                          \
  FUNCTION(Mem, clCreateBuffer, (Context, ULong, std::size_t, void*, Int*))                                          \
  FUNCTION(Int, clEnqueueNDRangeKernel,                                                                              \
           (Queue, KernelId, UInt, const std::size_t*, const std::size_t*, const std::size_t*, UInt, const EventId*, \
            EventId*))                                                                                               \
  FUNCTION(Int, clEnqueueWriteBuffer,                                                                                \
           (Queue, Mem, UInt, std::size_t, std::size_t, const void*, UInt, const EventId*, EventId*))                \
  FUNCTION(Int, clEnqueueReadBuffer,                                                                                 \
           (Queue, Mem, UInt, std::size_t, std::size_t, void*, UInt, const EventId*, EventId*))                      \
  FUNCTION(void*, clEnqueueMapBuffer,                                                                                \
           (Queue, Mem, UInt, ULong, std::size_t, std::size_t, UInt, const EventId*, EventId*, Int*))                \
  FUNCTION(Int, clEnqueueUnmapMemObject, (Queue, Mem, void*, UInt, const EventId*, EventId*))                        \
  FUNCTION(Int, clFlush, (Queue))                                                                                    \
  FUNCTION(Int, clFinish, (Queue))                                                                                   \
  FUNCTION(Int, clGetEventProfilingInfo, (EventId, UInt, std::size_t, void*, std::size_t*))                          \
  FUNCTION(Int, clReleaseEvent, (EventId))                                                                           \
  FUNCTION(Int, clReleaseMemObject, (Mem))                                                                           \
  FUNCTION(Int, clReleaseKernel, (KernelId))                                                                         \
  FUNCTION(Int, clReleaseProgram, (Program))                                                                         \
  FUNCTION(Int, clReleaseCommandQueue, (Queue))                                                                      \
  FUNCTION(Int, clReleaseContext, (Context))

struct Api {
#define GH_CL_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  GH_CL_FUNCTIONS(GH_CL_MEMBER)
#undef GH_CL_MEMBER
  // OpenCL 2.0, for a queue of low priority; absent before.
  Queue (*clCreateCommandQueueWithProperties)(Context, Device, const ULong*, Int*) = nullptr;
};

}  // namespace gpuhealth::canary::cl
