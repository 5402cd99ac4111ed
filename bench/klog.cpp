// SPDX-License-Identifier: Apache-2.0
// Lines of a kernel log that are classified in a second: a boot, a flood of noise, and a fault now and then.
// usage: bench_klog [LINES]. Prints the rate; exit code 1 below ten thousand lines a second.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "telemetry/klog/classifier.hpp"

namespace {

constexpr const char* kLines[] = {
    "Jan 06 14:37:39 host kernel: pci 0000:0b:00.0: [1002:73df] type 00 class 0x030000",
    "Jan 06 14:37:39 host kernel: ACPI: PM: Preparing to enter system sleep state S5, and other words of a boot",
    "Jan 06 14:37:39 host kernel: amdgpu 0000:0b:00.0: amdgpu: ring comp_1.2.0 uses VM inv eng 5 on hub 0",
    "Jan 06 14:37:39 host kernel: usb 1-2: New USB device found, idVendor=046d, idProduct=c52b, bcdDevice=12.10",
    "Jan 06 14:37:39 host kernel: [drm] Skip scheduling IBs!",
    "Jan 06 14:37:39 host kernel: [drm] Skip scheduling IBs!",
    "Jan 06 14:37:39 host kernel: amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:1)",
    "Jan 06 14:37:39 host kernel: amdgpu 0000:0b:00.0: amdgpu: \t WALKER_ERROR: 0x0",
};

}  // namespace

int main(int argc, char** argv) {
  const long lines = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1'000'000;
  std::string log;
  for (long i = 0; i < lines; ++i) {
    log += i % 5000 == 4999 ? "Jan 06 14:37:40 host kernel: amdgpu 0000:0b:00.0: amdgpu: GPU reset(2) failed"
                            : kLines[static_cast<std::size_t>(i) % std::size(kLines)];
    log += '\n';
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto events = gpuhealth::klog::classify(log);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double rate = static_cast<double>(lines) / took.count();
  std::printf("kernel log: %ld lines, %zu events, %.0f lines a second\n", lines, events.size(), rate);
  return rate < 10'000 ? 1 : 0;
}
