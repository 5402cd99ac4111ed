// SPDX-License-Identifier: Apache-2.0
// Is somebody else on the GPU? Contention is excluded, not averaged away: who used it between two looks is known from
// the kernel (DRM fdinfo engine time, KFD's process list, open NVIDIA nodes), not guessed from the numbers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "canary/measurement.hpp"

namespace gpuhealth::canary {

struct Process {
  int pid = 0;
  std::string name;                                // comm
  std::map<std::string, std::uint64_t> engine_ns;  // "client 7 gfx" -> ns, on the device that is looked at
  bool kfd = false;                                // has compute queues
  bool nvidia = false;                             // has a device open
};

struct GateLook {
  std::vector<Process> processes;
  bool everybody = false;  // all of /proc could be read, in the host's own process namespace
  // Of the machine, in clock ticks: for devices that are CPUs.
  std::uint64_t cpu_busy = 0, cpu_all = 0;
};

struct GateVerdict {
  bool busy = false;
  Gate gate = Gate::Unknown;
  std::string reason;  // "pid 4242 (python3) used gfx for 12 ms"
};
// Engine time of a client that both saw, or that is new, counts as use from 0.1 ms on; KFD and NVIDIA clients count by
// being there. `own`: the worker's processes.
GateVerdict compare_looks(const GateLook& before, const GateLook& after, const std::set<int>& own);

// The share of the machine's processors that others used between two looks, and whether a CPU device was held up by it.
// `own_ticks`: used by the worker; `waited`: its share of time spent runnable and not running.
GateVerdict compare_cpu(const GateLook& before, const GateLook& after, std::uint64_t own_ticks, double waited);

// Holds NVIDIA's nodes, and computes nothing: NVML's library is mapped, and the GPU's node is open a few times only.
// NVML opens it up to 4 times and maps libcuda as well; a context of CUDA or OpenCL opens it 20 times and more (driver
// 580). nvidia-smi, DCGM and our own reader are such. False when the maps cannot be read. `process`: "/proc/4242".
bool only_manages(const std::string& process, int opened);
// "/dev/nvidia0" and the like, not nvidiactl.
bool is_nvidia_node(std::string_view path);

// `root`: "" for this machine. `pci`: the device; empty for all.
GateLook look_for_clients(const std::string& root, const std::string& pci);

}  // namespace gpuhealth::canary
