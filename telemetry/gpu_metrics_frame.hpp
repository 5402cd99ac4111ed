// SPDX-License-Identifier: Apache-2.0
// What both readers of a metrics file share: which layout it has, how many of its bytes count, and the walk over an
// attribute stream. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "telemetry/gpu_metrics_table.hpp"

namespace gpuhealth::telemetry {

struct MetricsFrame {
  unsigned format = 0;
  unsigned content = 0;
  unsigned structure_size = 0;
  MetricsStatus status = MetricsStatus::Invalid;
  const Layout* layout = nullptr;  // null for a stream and for what is invalid
  bool stream = false;
  std::span<const std::uint8_t> bytes;  // those inside both the file and the stated size
};
MetricsFrame frame_metrics(std::span<const std::uint8_t> bytes, MetricsFile file);

// One attribute: where its `count` values of `type` lie.
struct Attribute {
  unsigned id = 0;
  FieldType type = FieldType::U8;
  unsigned count = 0;
  std::size_t offset = 0;
};

// Walks a packed stream: header, s32 count at byte 4, then (u64 encoding, values) without padding. Source: amd-gfx,
// 2025-09-15, "helper functions for gpu metrics" v4.
class AttributeWalk {
 public:
  enum class End : std::uint8_t { Complete, Cut, UnknownType };
  explicit AttributeWalk(std::span<const std::uint8_t> bytes);
  // Null at the end; end() then says of which kind.
  std::optional<Attribute> next();
  [[nodiscard]] End end() const { return end_; }
  [[nodiscard]] std::int64_t stated() const { return stated_; }  // as the stream says, negative when it is nonsense
  [[nodiscard]] bool reserved_used() const { return reserved_used_; }  // an encoding had bits above 31 set

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 8;
  std::int64_t stated_ = 0;
  std::int64_t seen_ = 0;
  End end_ = End::Complete;
  bool reserved_used_ = false;
};

}  // namespace gpuhealth::telemetry
