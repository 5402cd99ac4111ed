// SPDX-License-Identifier: Apache-2.0
// Host memory in the state that a canary needs. A mapping is good for one copy: the copy itself changes its state
// (host-copy stall: docs/canaries.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"

namespace gpuhealth::canary {

inline constexpr std::size_t kSlotBytes = 2U << 20U;

class HostMapping {
 public:
  enum class Kind : std::uint8_t {
    FileWritable,  // private, writable, every page read once: the state in which the stall shows
    FileReadOnly,  // the same, read-only: its control in copies
    Anonymous,     // written, shared with nobody: its control in pinning
  };
  // `file` holds `bytes` or more. Aligned to 2 MiB, so that the number of slots is known.
  static Result<HostMapping> make(Kind kind, int file, std::size_t bytes);
  HostMapping(HostMapping&& other) noexcept;
  HostMapping& operator=(HostMapping&&) = delete;
  HostMapping(const HostMapping&) = delete;
  HostMapping& operator=(const HostMapping&) = delete;
  ~HostMapping();
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Empty when every page is present and still the file's (pagemap bits 63 and 61); else why the state is not so:
  // mlock, MCL_FUTURE and MAP_POPULATE take it away. Of anonymous memory: present and not the file's.
  [[nodiscard]] std::string state_problem() const;

 private:
  HostMapping(Kind kind, void* data, std::size_t bytes, void* area, std::size_t area_bytes)
      : kind_(kind), data_(data), bytes_(bytes), area_(area), area_bytes_(area_bytes) {}
  Kind kind_;
  void* data_;
  std::size_t bytes_;
  void* area_;
  std::size_t area_bytes_;
};

// A file in memory with a pattern that a copy can be compared with.
Result<Fd> make_file(std::size_t bytes, std::uint32_t seed = 0);  // word i is i ^ seed

// Pins memory for the device and lets go again: 0, or an errno (EAGAIN: once more).
using Pin = std::function<int(void* data, std::size_t bytes)>;
struct PinProbe {
  std::vector<Mapping> mappings;
  double worst_call_ms = 0;
  int retries = 0;
  std::string inconclusive;  // the precondition does not hold
  std::string error;         // a call failed
};
PinProbe probe_pinning(const Pin& pin, int samples = 3, std::size_t bytes = 2 * kSlotBytes);

}  // namespace gpuhealth::canary
