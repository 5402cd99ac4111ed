// SPDX-License-Identifier: Apache-2.0
// What /proc says of a process or a thread: who it is, and what it spends. Source: proc_pid_stat(5), proc_pid_io(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuhealth::telemetry {

struct ProcStat {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t started = 0;  // ticks since boot
  bool kernel_thread = false;
};
// /proc/PID/stat, or a thread's. The name between the brackets may hold anything, brackets included.
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// /proc/PID/io: bytes that read() returned, whatever they came from, and those fetched from a disk; the greater one.
std::optional<std::uint64_t> parse_proc_io(std::string_view text);

// Whether a line of /proc/PID/maps is of a compute runtime (HIP, ROCr, CUDA): OpenCL's loader is not one, since many
// programs load it and never use it.
bool maps_compute_runtime(std::string_view maps);

// The name of a process, where the caller may see it and it is still the one that started then; else empty. `started`
// 0: whoever has the number.
std::string process_name(const std::string& root, std::uint32_t pid, std::uint64_t started);

}  // namespace gpuhealth::telemetry
