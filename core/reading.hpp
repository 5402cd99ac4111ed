// SPDX-License-Identifier: Apache-2.0
// A reading: a value with a unit and a status. Zero is a value; a sentinel is not. Nothing is invented to fill a gap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"

namespace gpuhealth {

enum class Unit : std::uint8_t {
  Celsius,
  Watt,
  Megahertz,
  Millivolt,
  Rpm,
  Percent,
  Byte,
  GigatransferPerSecond,
  Lane,
  Count,
};
// "C", "W", "MHz", "mV", "rpm", "%", "bytes", "GT/s", "lanes", "count".
std::string_view to_string(Unit unit);

enum class ReadingStatus : std::uint8_t {
  Valid,
  Unsupported,  // this card, board or kernel does not have it
  Asleep,       // the GPU is runtime-suspended; reading would wake it
  InReset,      // the driver refuses while the GPU is being reset
  SmuDead,      // it worked before, and the management firmware no longer answers
  Unreadable,   // the read failed; sys_errno says how
  Stuck,        // the read did not return by its deadline
  Stale,        // the value is older than three sampling periods
  Implausible,  // a sentinel, or a value outside what this sensor can say
};
// "valid", "unsupported", "asleep", "in-reset", "smu-dead", "unreadable", "stuck", "stale", "implausible".
std::string_view to_string(ReadingStatus status);
std::optional<ReadingStatus> reading_status_from(std::string_view name);

enum class Keep : std::uint8_t { Live, History };

enum class ReadingId : std::uint16_t {
#define READING(id, name, unit, keep, text) id,
#include "core/readings.def"
#undef READING
  PlainCount,
  // RAS counters follow the plain readings: block * 3 + kind, see ras_reading().
  RasFirst = 256,
};

inline constexpr std::size_t kPlainReadingCount = static_cast<std::size_t>(ReadingId::PlainCount);

// RAS blocks in the driver's bit order (amdgpu_ras.h, amdgpu_ras_block), with the MCA sub-blocks behind.
inline constexpr std::array<std::string_view, 23> kRasBlocks = {
    "umc", "sdma", "gfx", "mmhub", "athub", "pcie_bif", "hdp",  "xgmi_wafl", "df",      "smn",      "sem",     "mp0",
    "mp1", "fuse", "mca", "vcn",   "jpeg",  "ih",       "mpio", "mca_mp0",   "mca_mp1", "mca_mpio", "mca_iohc"};
enum class RasKind : std::uint8_t { Correctable, Uncorrectable, Deferred };
inline constexpr std::size_t kRasReadingCount = kRasBlocks.size() * 3;

constexpr ReadingId ras_reading(std::size_t block, RasKind kind) {
  return static_cast<ReadingId>(static_cast<std::size_t>(ReadingId::RasFirst) + block * 3 +
                                static_cast<std::size_t>(kind));
}

struct ReadingInfo {
  ReadingId id;
  std::string_view name;  // "temperature.edge", "ras.umc.correctable"
  Unit unit;
  Keep keep;
  std::string_view text;
};

// The table: all plain readings in order, then all RAS counters.
std::span<const ReadingInfo> all_readings();
// Null for a number that is no reading (a newer program's database, a damaged frame).
const ReadingInfo* find_reading(ReadingId id);
const ReadingInfo* find_reading(std::string_view name);

struct Reading {
  ReadingId id{};
  ReadingStatus status = ReadingStatus::Unsupported;
  std::int16_t sys_errno = 0;  // set where the status follows from a failed read
  double value = 0;            // meaningful when Valid; the last good value when Stale
  friend bool operator==(const Reading&, const Reading&) = default;
};

}  // namespace gpuhealth
