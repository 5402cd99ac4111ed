// SPDX-License-Identifier: Apache-2.0
// What the compute driver tells of its GPUs (AMDKFD_IOC_SMI_EVENTS; kfd_smi_events.c, kfd_ioctl.h of Linux 6.1 to 7.0),
// as events of the kernel log's types. Its queue holds 1024 bytes a GPU, drops what does not fit without a word, and
// hands out a record in pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "telemetry/frame.hpp"

namespace gpuhealth::telemetry {

// Bit N - 1 asks for event N: page faults, throttling, resets, queues; of all processes where that is allowed. Not
// asked for are migrations and recoverable faults, which come by the thousand and are no trouble.
inline constexpr std::uint64_t kKfdEventMask =
    1ULL << 0U | 1ULL << 1U | 1ULL << 2U | 1ULL << 3U | 1ULL << 8U | 1ULL << 9U | 1ULL << 63U;

enum class KfdEventKind : std::uint8_t { PageFault, Throttle, ResetBegin, ResetEnd, QueuesOff, QueuesOn };
struct KfdEvent {
  KfdEventKind kind{};
  std::uint64_t number = 0;  // of the reset; how often it has throttled; what took the queues off
  std::uint64_t mask = 0;    // of the reasons, where it throttles
  std::uint32_t pid = 0;
  std::string words;  // the program's name; the cause of a reset
};
// One record without its line end; nothing for other events, newer ones and what makes no sense.
std::optional<KfdEvent> parse_kfd_event(std::string_view record);

class KfdEventLog {
 public:
  // Whether the process still runs: one that ended gets its queues back never.
  explicit KfdEventLog(std::function<bool(std::uint32_t pid)> runs = {}) : runs_(std::move(runs)) {}

  // What a read gave of this GPU's queue: any piece of records.
  void take(const PciAddress& gpu, std::string_view bytes, std::int64_t now_us);
  // What is new, bursts folded; nothing when nothing is.
  std::optional<KlogFrame> news(std::int64_t now_us);
  // Something may become an event without another record.
  [[nodiscard]] bool waits() const { return !folds_.empty() || !off_.empty(); }

 private:
  struct Fold {
    KlogFrame::Item item;
    std::int64_t since_us = 0;
    std::uint64_t more = 0;
  };
  struct Off {
    std::int64_t since_us = 0;
    std::uint64_t why = 0;
  };
  void record(const PciAddress& gpu, std::string_view line, std::int64_t now_us);
  void count_missed(const PciAddress& gpu, const KfdEvent& event);
  void tell(const PciAddress& gpu, const KfdEvent& event, std::int64_t now_us);
  void follow_queues(const PciAddress& gpu, const KfdEvent& event, std::int64_t now_us);
  void look_for_lost_queues(std::int64_t now_us);

  std::function<bool(std::uint32_t)> runs_;
  std::map<PciAddress, std::string> pieces_;
  std::map<PciAddress, std::uint64_t> resets_;  // number of the last one
  std::map<std::tuple<PciAddress, klog::Type, std::uint32_t>, Fold> folds_;
  std::map<std::pair<PciAddress, std::uint32_t>, Off> off_;
  std::vector<KlogFrame::Item> news_;
  std::uint64_t missed_ = 0;
};

// `gpuhealth-reader --source kfd-events`: asks each GPU below `sysroot` (empty: this machine) for its events and writes
// frames to `out` until `in` ends. /dev/kfd itself is held open by nobody. Returns an exit code.
int follow_kfd_events(const std::string& sysroot, int in, int out);

}  // namespace gpuhealth::telemetry
