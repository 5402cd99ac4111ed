// SPDX-License-Identifier: Apache-2.0
// amdgpu's RAS files below `ras/` beside the counters (parse.hpp has those). Sources: amdgpu_ras.c, amdgpu_aca.c of
// Linux 6.1 to 6.12.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuhealth::telemetry {

// gpu_vram_bad_pages: "0x00000001 : 0x00001000 : R" a line: page, size, flag.
struct BadPages {
  std::uint64_t retired = 0;  // R: reserved, nobody gets them
  std::uint64_t pending = 0;  // P: still in use, to be reserved
  std::uint64_t failed = 0;   // F: could not be reserved
  [[nodiscard]] std::uint64_t total() const { return retired + pending + failed; }
};
// An empty text is no bad page; nothing for a text of another format. A line cut off at the end does not count.
std::optional<BadPages> parse_bad_pages(std::string_view text);

// event_state: software counters, cheap to read; shared by the cards of an XGMI hive.
struct RasEvents {
  std::uint64_t sequence = 0;  // grows with every event
  std::uint64_t fatal = 0;
  std::uint64_t poison_created = 0;
  std::uint64_t poison_consumed = 0;
};
std::optional<RasEvents> parse_ras_events(std::string_view text);

// A query of the memory controllers of a sleeping GPU reads all ones and adds 1048560 (0xFFFF0) to the driver's sum,
// each time. Such a sum is no count, and what is true in it cannot be told.
bool is_false_ras_count(std::uint64_t count);

}  // namespace gpuhealth::telemetry
