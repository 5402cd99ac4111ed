// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace gpuhealth::canary {
namespace {

struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

template <class... Args>
bool call(void* library, const char* name, Args... args) {
  auto* function = reinterpret_cast<int (*)(Args...)>(dlsym(library, name));
  return function != nullptr && function(args...) == 0;
}

}  // namespace

Nvml::Nvml(const std::string& pci) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr || pci.empty()) return;
  if (!call(library_, "nvmlInit_v2")) return;
  void* device = nullptr;
  if (call(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci.c_str(), &device)) device_ = device;
}

std::map<std::string, std::string> Nvml::state() const {
  std::map<std::string, std::string> out;
  if (!ok()) return out;
  const auto number = [&](const char* key, unsigned value) { out[key] = std::to_string(value); };
  unsigned v = 0;
  constexpr unsigned kSm = 1;
  constexpr unsigned kMemory = 2;
  if (call(library_, "nvmlDeviceGetClockInfo", device_, kSm, &v)) number("clock_gfx_mhz", v);
  if (call(library_, "nvmlDeviceGetClockInfo", device_, kMemory, &v)) number("clock_memory_mhz", v);
  if (call(library_, "nvmlDeviceGetTemperature", device_, 0U, &v)) number("temperature_edge_c", v);
  if (call(library_, "nvmlDeviceGetPowerUsage", device_, &v)) number("power_w", v / 1000);
  unsigned width = 0;
  if (call(library_, "nvmlDeviceGetCurrPcieLinkGeneration", device_, &v) &&
      call(library_, "nvmlDeviceGetCurrPcieLinkWidth", device_, &width))
    out["link"] = "Gen" + std::to_string(v) + " x" + std::to_string(width);
  unsigned long long reasons = 0;
  if (call(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "0x%llx", reasons);
    out["throttle_reasons"] = text.data();
  }
  return out;
}

std::vector<int> Nvml::compute_pids() const {
  std::vector<int> out;
  if (!ok()) return out;
  std::array<ProcessInfo, 128> infos{};
  unsigned count = infos.size();
  if (!call(library_, "nvmlDeviceGetComputeRunningProcesses_v3", device_, &count, infos.data()) &&
      !call(library_, "nvmlDeviceGetComputeRunningProcesses_v2", device_, &count, infos.data()))
    return out;
  for (unsigned i = 0; i < count && i < infos.size(); ++i) out.push_back(static_cast<int>(infos.at(i).pid));
  return out;
}

bool Nvml::partitioned() const {
  unsigned now = 0;
  unsigned pending = 0;
  return ok() && call(library_, "nvmlDeviceGetMigMode", device_, &now, &pending) && now == 1;
}

}  // namespace gpuhealth::canary
