// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml for tests: one GPU at 0000:41:00.0, and what a real card does not do. The file that STANDIN_NVML names
// has one order a line: "hang FUNCTION", "abort FUNCTION", "code FUNCTION NUMBER", "lost". Built with STANDIN_OLD it
// lacks what an old driver lacks.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

int order_for(const char* function) {
  const char* file = std::getenv("STANDIN_NVML");
  std::ifstream in(file != nullptr ? file : "/dev/null");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what, name;
    int number = 0;
    words >> what >> name >> number;
    if (what == "lost" && std::strncmp(function, "nvmlDevice", 10) == 0) return 15;
    if (name != function) continue;
    if (what == "hang") pause();
    if (what == "abort") std::abort();
    if (what == "code") return number;
  }
  return 0;
}

int gpu;  // its address is the handle

}  // namespace

#define ORDER \
  if (const int code = order_for(__func__); code != 0) return code
#define TEXT(name, text)                                 \
  extern "C" int name(void*, char* out, unsigned size) { \
    ORDER;                                               \
    std::snprintf(out, size, "%s", text);                \
    return 0;                                            \
  }
#define ONE(name, value)                      \
  extern "C" int name(void*, unsigned* out) { \
    ORDER;                                    \
    *out = value;                             \
    return 0;                                 \
  }

extern "C" int nvmlInit_v2() {
  ORDER;
  return 0;
}
extern "C" int nvmlShutdown() {
  return 0;
}
extern "C" const char* nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : code == 9 ? "Driver Not Loaded" : "some other error";
}
extern "C" int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** out) {
  ORDER;
  if (std::strcmp(id, "00000000:41:00.0") != 0) return 6;
  *out = &gpu;
  return 0;
}
TEXT(nvmlDeviceGetName, "NVIDIA H200")
TEXT(nvmlDeviceGetUUID, "GPU-7d3b6a1e-0001-0002-0003-000000000004")
TEXT(nvmlDeviceGetSerial, "1650000000001")
TEXT(nvmlDeviceGetVbiosVersion, "96.00.AF.00.01")

extern "C" int nvmlDeviceGetTemperature(void*, int, unsigned* out) {
  ORDER;
  *out = 41;
  return 0;
}
extern "C" int nvmlDeviceGetTemperatureThreshold(void*, int which, unsigned* out) {
  ORDER;
  const unsigned limits[] = {95, 92, 105, 87};
  *out = limits[which];
  return 0;
}
ONE(nvmlDeviceGetPowerUsage, 118250)
ONE(nvmlDeviceGetEnforcedPowerLimit, 700000)
ONE(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
extern "C" int nvmlDeviceGetPowerManagementLimitConstraints(void*, unsigned* low, unsigned* high) {
  ORDER;
  *low = 200000;
  *high = 700000;
  return 0;
}
extern "C" int nvmlDeviceGetClockInfo(void*, int which, unsigned* out) {
  ORDER;
  *out = which == 2 ? 3201 : 1980;
  return 0;
}
extern "C" int nvmlDeviceGetMaxClockInfo(void*, int which, unsigned* out) {
  ORDER;
  *out = which == 2 ? 3201 : 1980;
  return 0;
}
extern "C" int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* out) {
  ORDER;
  *out = 0x4 | 0x1;  // power limit, and idle, which is none
  return 0;
}
extern "C" int nvmlDeviceGetFanSpeed(void*, unsigned*) {
  ORDER;
  return 3;  // a data-centre card has no fan
}
extern "C" int nvmlDeviceGetUtilizationRates(void*, unsigned* out) {
  ORDER;
  out[0] = 97;
  out[1] = 33;
  return 0;
}
extern "C" int nvmlDeviceGetMemoryInfo(void*, unsigned long long* out) {
  ORDER;
  out[0] = 150754820096ULL;
  out[2] = 5368709120ULL;
  out[1] = out[0] - out[2];
  return 0;
}
ONE(nvmlDeviceGetCurrPcieLinkGeneration, 5)
ONE(nvmlDeviceGetMaxPcieLinkGeneration, 5)
ONE(nvmlDeviceGetCurrPcieLinkWidth, 16)
ONE(nvmlDeviceGetMaxPcieLinkWidth, 16)
ONE(nvmlDeviceGetPcieReplayCounter, 7)
extern "C" int nvmlDeviceGetPerformanceState(void*, int* out) {
  ORDER;
  *out = 0;
  return 0;
}
extern "C" int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
  ORDER;
  *current = *pending = 1;
  return 0;
}
extern "C" int nvmlDeviceGetTotalEccErrors(void*, int kind, int, unsigned long long* out) {
  ORDER;
  *out = kind == 0 ? 12 : 1;
  return 0;
}
extern "C" int nvmlDeviceGetRetiredPages(void*, int cause, unsigned* count, unsigned long long*) {
  ORDER;
  *count = cause == 0 ? 3 : 2;
  return 7;  // "too little room": the number is right
}

#ifdef STANDIN_OLD
extern "C" int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void* out) {
  ORDER;
  struct Process {
    unsigned pid;
    unsigned long long used;
  };
  *count = 1;
  *static_cast<Process*>(out) = {4242, 1073741824ULL};
  return 0;
}
#else
extern "C" int nvmlDeviceGetMemoryInfo_v2(void*, void* out) {
  ORDER;
  struct Memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
  };
  auto& m = *static_cast<Memory*>(out);
  if (m.version != (sizeof(Memory) | 2U << 24U)) return 2;
  m.total = 150754820096ULL;
  m.reserved = 600000000ULL;
  m.used = 4294967296ULL;
  m.free = m.total - m.used - m.reserved;
  return 0;
}
extern "C" int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* out) {
  ORDER;
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, out);
}
extern "C" int nvmlDeviceGetFieldValues(void*, int count, void* out) {
  ORDER;
  struct Field {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    unsigned long long value;
  };
  auto* fields = static_cast<Field*>(out);
  for (int i = 0; i < count; ++i) {
    auto& f = fields[i];
    f.type = 1;
    f.result = f.field == 82 || f.field == 185 || f.field == 186 ? 0 : 3;
    f.value = f.field == 82 ? 52 : f.field == 185 ? 117000 : 121500;
  }
  return 0;
}
extern "C" int nvmlDeviceGetBAR1MemoryInfo(void*, unsigned long long* out) {
  ORDER;
  out[0] = 274877906944ULL;
  out[2] = 1048576ULL;
  out[1] = out[0] - out[2];
  return 0;
}
extern "C" int nvmlDeviceGetDecoderUtilization(void*, unsigned* out, unsigned* period) {
  ORDER;
  *out = 5;
  *period = 1000;
  return 0;
}
extern "C" int nvmlDeviceGetEncoderUtilization(void*, unsigned*, unsigned*) {
  ORDER;
  return 3;
}
extern "C" int nvmlDeviceGetMemoryErrorCounter(void*, int kind, int counter, int location, unsigned long long* out) {
  ORDER;
  if (counter != 0) return 2;
  *out = location == 2 ? (kind == 0 ? 4 : 0) : location == 7 ? (kind == 0 ? 1 : 0) : 0;
  return location == 2 || location == 7 ? 0 : 3;
}
extern "C" int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                         unsigned* failure) {
  ORDER;
  *corrected = 1;
  *uncorrected = 2;
  *pending = 1;
  *failure = 0;
  return 0;
}
extern "C" int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  ORDER;
  *current = *pending = 0;
  return 0;
}
extern "C" int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* out) {
  ORDER;
  struct Process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
  };
  auto* list = static_cast<Process*>(out);
  *count = 2;
  list[0] = {4242, 3221225472ULL, ~0U, ~0U};
  list[1] = {4343, ~0ULL, ~0U, ~0U};
  return 0;
}
extern "C" int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, void*) {
  ORDER;
  *count = 0;
  return 0;
}
#endif
