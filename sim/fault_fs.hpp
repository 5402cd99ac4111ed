// SPDX-License-Identifier: Apache-2.0
// A folder served over FUSE as sysfs would serve it, with faults: errors, delays, reads that never return (and leave
// the reader in state D, as a hung driver does), short reads. Counts who reads and writes what. Needs root or a user
// namespace, and /dev/fuse.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::sim {

struct Fault {
  enum class Kind : std::uint8_t { ReadError, OpenError, WriteError, Delay, Hang, Short };
  Kind kind{};
  int value = 0;  // errno; milliseconds; bytes
};

enum class AccessKind : std::uint8_t { Open, Read, Write };

struct Access {
  std::chrono::steady_clock::time_point time;
  AccessKind kind{};
  std::string path;  // below the folder, without a slash in front
};

class FaultFs {
 public:
  // Serves `backing` at `mount_point` from a thread of its own until it is destroyed. Both exist.
  static Result<std::unique_ptr<FaultFs>> mount(const std::filesystem::path& backing,
                                                const std::filesystem::path& mount_point);
  ~FaultFs();  // reads that hang get an error
  FaultFs(const FaultFs&) = delete;
  FaultFs& operator=(const FaultFs&) = delete;

  // For files whose path matches the glob ('*' also matches '/'); the last one added wins. Returns its number.
  int add(std::string pattern, Fault fault);
  void remove(int number);  // reads that it holds are answered

  // Answers the delayed reads that are due. To be called every few milliseconds while there are delays.
  void tick();

  // As long as it is held no program's write goes through, so that what is read and written meanwhile belongs together.
  [[nodiscard]] std::unique_lock<std::mutex> hold_writes();

  // What is remembered of who reads and writes what: accesses of these kinds; all, unless told.
  void remember(std::vector<AccessKind> kinds);
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::size_t held() const;  // reads that hang now

  struct Impl;  // libfuse's callbacks see it

 private:
  explicit FaultFs(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::sim
