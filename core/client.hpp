// SPDX-License-Identifier: Apache-2.0
// A process that uses a GPU, as the kernel tells it. No name: whoever may see the process reads that from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/clock.hpp"

namespace gpuhealth {

struct GpuClient {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;  // in clock ticks since boot (/proc/PID/stat): tells a pid from its next owner
  std::optional<std::uint64_t> vram_bytes;  // nothing where the kernel does not say
  std::uint64_t gtt_bytes = 0;
  std::uint64_t evicted_bytes = 0;  // belongs in video memory and does not lie there
  bool open = false;                // has a node of the GPU open
  bool queues = false;              // has compute queues
  bool library = false;             // has a compute runtime loaded

  // Of the time since the look before; nothing at the first.
  std::optional<double> engine_percent;  // of its busiest DRM engine; compute queues are not in it
  std::optional<double> cpu_percent;     // of one processor, all threads
  // Of the thread that spent most time in the kernel; looked at only where the process spends any.
  std::optional<double> thread_system_percent;
  std::optional<double> thread_user_percent;
  std::optional<double> read_bytes_per_s;  // by read() or from a disk

  friend bool operator==(const GpuClient&, const GpuClient&) = default;
};

// One look at all clients of one GPU.
struct ClientLook {
  SteadyTime time;
  bool complete = false;           // every process could be looked at: none is missing
  unsigned processors = 0;         // that are online
  std::vector<GpuClient> clients;  // by pid
};

}  // namespace gpuhealth
