// SPDX-License-Identifier: Apache-2.0
// What is called of libnvidia-ml.so.1, declared by us, so that nothing of NVIDIA is needed to build. Names, numbers and
// layouts are those of the NVML API reference (docs.nvidia.com/deploy/nvml-api); _vN functions keep theirs for ever.
#pragma once

#include <cstdint>

namespace gpuhealth::telemetry::nvml {

using Device = void*;

enum Return : int {  // nvmlReturn_t
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
};

enum Temperature : int { kGpu = 0 };                                                 // nvmlTemperatureSensors_t
enum Threshold : int { kShutdown = 0, kSlowdown = 1, kMemoryMax = 2, kGpuMax = 3 };  // nvmlTemperatureThresholds_t
enum Clock : int { kGraphics = 0, kSm = 1, kMemory = 2 };                            // nvmlClockType_t
enum ErrorKind : int { kCorrected = 0, kUncorrected = 1 };                           // nvmlMemoryErrorType_t
enum Counter : int { kVolatile = 0, kAggregate = 1 };                                // nvmlEccCounterType_t
enum Location : int { kDeviceMemory = 2, kSram = 7 };                                // nvmlMemoryLocation_t
enum Cause : int { kManySingleBit = 0, kDoubleBit = 1 };                             // nvmlPageRetirementCause_t
constexpr unsigned kFieldMemoryTemperature = 82;                                     // NVML_FI_DEV_*
constexpr unsigned kFieldPowerAverage = 185;
constexpr unsigned kFieldPowerInstant = 186;
constexpr unsigned long long kNotAvailable = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE

// nvmlClocksEventReason*; idle (1) and display clocks (0x100) are no throttling.
constexpr unsigned long long kReasonAppClocks = 0x2, kReasonSwPowerCap = 0x4, kReasonHwSlowdown = 0x8,
                             kReasonSyncBoost = 0x10, kReasonSwThermal = 0x20, kReasonHwThermal = 0x40,
                             kReasonHwPowerBrake = 0x80;

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {  // nvmlMemory_t: used includes what the driver keeps for itself
  unsigned long long total, free, used;
};
struct Memory2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemory2Version = sizeof(Memory2) | 2U << 24U;
struct Bar1 {
  unsigned long long total, free, used;
};
enum ValueType : int {
  kDouble = 0,
  kUnsigned = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSigned = 5
};
union Value {
  double d;
  int i;
  unsigned u;
  unsigned long ul;
  unsigned long long ull;
  long long ll;
};
struct Field {  // nvmlFieldValue_t
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int result;
  Value value;
};
static_assert(sizeof(Field) == 40);
struct ProcessV1 {
  unsigned pid;
  unsigned long long used;
};
struct ProcessV2 {  // of _v2 and _v3 functions
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessV1) == 16 && sizeof(ProcessV2) == 24);

// Every function that is looked up: NVML(member, name, signature). What an old driver lacks is null.
#define GPUHEALTH_NVML_FUNCTIONS(NVML)                                                                    \
  NVML(init, "nvmlInit_v2", int())                                                                        \
  NVML(shutdown, "nvmlShutdown", int())                                                                   \
  NVML(error_string, "nvmlErrorString", const char*(int))                                                 \
  NVML(handle, "nvmlDeviceGetHandleByPciBusId_v2", int(const char*, Device*))                             \
  NVML(name, "nvmlDeviceGetName", int(Device, char*, unsigned))                                           \
  NVML(uuid, "nvmlDeviceGetUUID", int(Device, char*, unsigned))                                           \
  NVML(serial, "nvmlDeviceGetSerial", int(Device, char*, unsigned))                                       \
  NVML(vbios, "nvmlDeviceGetVbiosVersion", int(Device, char*, unsigned))                                  \
  NVML(temperature, "nvmlDeviceGetTemperature", int(Device, int, unsigned*))                              \
  NVML(threshold, "nvmlDeviceGetTemperatureThreshold", int(Device, int, unsigned*))                       \
  NVML(fields, "nvmlDeviceGetFieldValues", int(Device, int, Field*))                                      \
  NVML(power, "nvmlDeviceGetPowerUsage", int(Device, unsigned*))                                          \
  NVML(enforced_limit, "nvmlDeviceGetEnforcedPowerLimit", int(Device, unsigned*))                         \
  NVML(default_limit, "nvmlDeviceGetPowerManagementDefaultLimit", int(Device, unsigned*))                 \
  NVML(limit_range, "nvmlDeviceGetPowerManagementLimitConstraints", int(Device, unsigned*, unsigned*))    \
  NVML(clock, "nvmlDeviceGetClockInfo", int(Device, int, unsigned*))                                      \
  NVML(max_clock, "nvmlDeviceGetMaxClockInfo", int(Device, int, unsigned*))                               \
  NVML(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", int(Device, unsigned long long*))            \
  NVML(event_reasons, "nvmlDeviceGetCurrentClocksEventReasons", int(Device, unsigned long long*))         \
  NVML(fan, "nvmlDeviceGetFanSpeed", int(Device, unsigned*))                                              \
  NVML(utilization, "nvmlDeviceGetUtilizationRates", int(Device, Utilization*))                           \
  NVML(decoder, "nvmlDeviceGetDecoderUtilization", int(Device, unsigned*, unsigned*))                     \
  NVML(encoder, "nvmlDeviceGetEncoderUtilization", int(Device, unsigned*, unsigned*))                     \
  NVML(memory, "nvmlDeviceGetMemoryInfo", int(Device, Memory*))                                           \
  NVML(memory2, "nvmlDeviceGetMemoryInfo_v2", int(Device, Memory2*))                                      \
  NVML(bar1, "nvmlDeviceGetBAR1MemoryInfo", int(Device, Bar1*))                                           \
  NVML(link_generation, "nvmlDeviceGetCurrPcieLinkGeneration", int(Device, unsigned*))                    \
  NVML(link_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration", int(Device, unsigned*))                 \
  NVML(link_width, "nvmlDeviceGetCurrPcieLinkWidth", int(Device, unsigned*))                              \
  NVML(link_width_max, "nvmlDeviceGetMaxPcieLinkWidth", int(Device, unsigned*))                           \
  NVML(replays, "nvmlDeviceGetPcieReplayCounter", int(Device, unsigned*))                                 \
  NVML(performance_state, "nvmlDeviceGetPerformanceState", int(Device, int*))                             \
  NVML(ecc_mode, "nvmlDeviceGetEccMode", int(Device, int*, int*))                                         \
  NVML(memory_errors, "nvmlDeviceGetMemoryErrorCounter", int(Device, int, int, int, unsigned long long*)) \
  NVML(total_errors, "nvmlDeviceGetTotalEccErrors", int(Device, int, int, unsigned long long*))           \
  NVML(retired, "nvmlDeviceGetRetiredPages", int(Device, int, unsigned*, unsigned long long*))            \
  NVML(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", int(Device, int*))                      \
  NVML(remapped, "nvmlDeviceGetRemappedRows", int(Device, unsigned*, unsigned*, unsigned*, unsigned*))    \
  NVML(mig_mode, "nvmlDeviceGetMigMode", int(Device, unsigned*, unsigned*))                               \
  NVML(compute_v3, "nvmlDeviceGetComputeRunningProcesses_v3", int(Device, unsigned*, ProcessV2*))         \
  NVML(compute_v2, "nvmlDeviceGetComputeRunningProcesses_v2", int(Device, unsigned*, ProcessV2*))         \
  NVML(compute_v1, "nvmlDeviceGetComputeRunningProcesses", int(Device, unsigned*, ProcessV1*))            \
  NVML(graphics_v3, "nvmlDeviceGetGraphicsRunningProcesses_v3", int(Device, unsigned*, ProcessV2*))       \
  NVML(graphics_v2, "nvmlDeviceGetGraphicsRunningProcesses_v2", int(Device, unsigned*, ProcessV2*))       \
  NVML(graphics_v1, "nvmlDeviceGetGraphicsRunningProcesses", int(Device, unsigned*, ProcessV1*))

// `int(Device, …)` as a pointer to such a function.
template <class Signature>
using Function = Signature*;

struct Api {
#define GPUHEALTH_NVML_MEMBER(member, name, ...) Function<__VA_ARGS__> member = nullptr;
  GPUHEALTH_NVML_FUNCTIONS(GPUHEALTH_NVML_MEMBER)
#undef GPUHEALTH_NVML_MEMBER
};

}  // namespace gpuhealth::telemetry::nvml
