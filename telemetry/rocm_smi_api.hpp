// SPDX-License-Identifier: Apache-2.0
// What is called of librocm_smi64.so.1, declared by us. Debian's 5.2.3 and ROCm's 6.x and 7.x share that name and
// differ in their structs (rocm_smi.h of each): only numbers and buffers that are larger than all of them are passed,
// and what is in a buffer is read by generation. The newer ones export rsmi_dev_power_get.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuhealth::telemetry::rsmi {

enum Status : std::uint32_t {  // rsmi_status_t
  kSuccess = 0,
  kInvalidArguments = 1,
  kNotSupported = 2,
  kFileError = 3,
  kPermission = 4,
  kInitError = 8,  // without /sys/class/kfd; 5.2.3 also where another process holds its lock for five seconds
  kNotYetImplemented = 9,
  kBusy = 16,
};

enum Metric : int { kCurrent = 0, kCritical = 5, kEmergency = 7 };      // rsmi_temperature_metric_t
enum Sensor : std::uint32_t { kEdge = 0, kJunction = 1, kMemory = 2 };  // rsmi_temperature_type_t
enum MemoryType : int { kVram = 0, kVisibleVram = 1, kGtt = 2 };        // rsmi_memory_type_t
enum ClockType : int { kSystemClock = 0, kMemoryClock = 4 };            // rsmi_clk_type_t
constexpr std::uint64_t kUmc = 1;                                       // rsmi_gpu_block_t

struct ErrorCount {  // rsmi_error_count_t, the same in all
  std::uint64_t correctable, uncorrectable;
  std::uint64_t room[6];  // a later one has a third number
};
// Larger than rsmi_frequencies_t and rsmi_gpu_metrics_t of every generation (280 and 1832 bytes in 6.3).
struct Buffer {
  alignas(8) std::byte bytes[8192];
};

// RSMI(member, name, signature). All but rsmi_init may be missing.
#define GPUHEALTH_RSMI_FUNCTIONS(RSMI)                                                                    \
  RSMI(init, "rsmi_init", Status(std::uint64_t))                                                          \
  RSMI(shut_down, "rsmi_shut_down", Status())                                                             \
  RSMI(count, "rsmi_num_monitor_devices", Status(std::uint32_t*))                                         \
  RSMI(pci_id, "rsmi_dev_pci_id_get", Status(std::uint32_t, std::uint64_t*))                              \
  RSMI(temperature, "rsmi_dev_temp_metric_get", Status(std::uint32_t, std::uint32_t, int, std::int64_t*)) \
  RSMI(power_average, "rsmi_dev_power_ave_get", Status(std::uint32_t, std::uint32_t, std::uint64_t*))     \
  RSMI(power_any, "rsmi_dev_power_get", Status(std::uint32_t, std::uint64_t*, int*))                      \
  RSMI(cap, "rsmi_dev_power_cap_get", Status(std::uint32_t, std::uint32_t, std::uint64_t*))               \
  RSMI(cap_default, "rsmi_dev_power_cap_default_get", Status(std::uint32_t, std::uint64_t*))              \
  RSMI(cap_range, "rsmi_dev_power_cap_range_get",                                                         \
       Status(std::uint32_t, std::uint32_t, std::uint64_t*, std::uint64_t*))                              \
  RSMI(fan_rpm, "rsmi_dev_fan_rpms_get", Status(std::uint32_t, std::uint32_t, std::int64_t*))             \
  RSMI(memory_total, "rsmi_dev_memory_total_get", Status(std::uint32_t, int, std::uint64_t*))             \
  RSMI(memory_used, "rsmi_dev_memory_usage_get", Status(std::uint32_t, int, std::uint64_t*))              \
  RSMI(busy, "rsmi_dev_busy_percent_get", Status(std::uint32_t, std::uint32_t*))                          \
  RSMI(replays, "rsmi_dev_pci_replay_counter_get", Status(std::uint32_t, std::uint64_t*))                 \
  RSMI(errors, "rsmi_dev_ecc_count_get", Status(std::uint32_t, std::uint64_t, ErrorCount*))               \
  RSMI(clock, "rsmi_dev_gpu_clk_freq_get", Status(std::uint32_t, int, Buffer*))                           \
  RSMI(metrics, "rsmi_dev_gpu_metrics_info_get", Status(std::uint32_t, Buffer*))                          \
  RSMI(reserved_pages, "rsmi_dev_memory_reserved_pages_get", Status(std::uint32_t, std::uint32_t*, void*))

template <class Signature>
using Function = Signature*;

struct Api {
#define GPUHEALTH_RSMI_MEMBER(member, name, ...) Function<__VA_ARGS__> member = nullptr;
  GPUHEALTH_RSMI_FUNCTIONS(GPUHEALTH_RSMI_MEMBER)
#undef GPUHEALTH_RSMI_MEMBER
  [[nodiscard]] bool newer() const { return power_any != nullptr; }  // 6.x and 7.x
};

// The current frequency in Hz of what rsmi_dev_gpu_clk_freq_get wrote; 0 where there is none.
std::uint64_t current_frequency(const Buffer& buffer, bool newer);

}  // namespace gpuhealth::telemetry::rsmi
