// SPDX-License-Identifier: Apache-2.0
// The layout table behind the decoder (gpu_metrics_layouts.inc) and what is looked up in it. Private to the room, its
// tests and the fuzz target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

// In the order of the streams' type numbers 0..7.
enum class FieldType : std::uint8_t { U8, S8, U16, S16, U32, S32, U64, S64 };
constexpr std::size_t width_of(FieldType type) {
  return std::size_t{1} << (static_cast<unsigned>(type) / 2);
}
constexpr bool is_signed(FieldType type) {
  return static_cast<unsigned>(type) % 2 == 1;
}

struct FieldRow {
  std::string_view name;  // "NAME[].FIELD" repeats: "NAME[0].FIELD", "NAME[1].FIELD", …
  std::uint16_t offset;
  FieldType type;
  std::uint16_t count;  // elements; 1 for a scalar
  std::string_view unit;
  std::uint16_t repeats = 1;
  std::uint16_t stride = 0;
};

// Rows that lie one after the other in tables of their own; revisions share beginnings.
struct FieldParts {
  std::array<std::span<const FieldRow>, 7> spans{};
  std::size_t count = 0;
  constexpr FieldParts(std::initializer_list<std::span<const FieldRow>> list) {
    for (const auto& part : list) spans.at(count++) = part;
  }
  [[nodiscard]] constexpr const auto* begin() const { return spans.data(); }
  [[nodiscard]] constexpr const auto* end() const { return spans.data() + count; }
};

struct Layout {
  MetricsFile file;
  std::uint8_t format;
  std::uint8_t content;
  std::uint16_t size;
  std::string_view source;
  FieldParts parts;
};
std::span<const Layout> all_layouts();
// The layout of exactly this revision, null when there is none.
const Layout* find_layout(MetricsFile file, unsigned format, unsigned content);
// The newest fixed layout of a format, null when the format is not known.
const Layout* newest_layout(MetricsFile file, unsigned format);

// Revisions that are attribute streams, not structs.
bool is_stream(MetricsFile file, unsigned format, unsigned content);
// True for what comes after the newest revision known, fixed or stream.
bool is_newer_than_known(MetricsFile file, unsigned format, unsigned content);
// Null for ids of later kernels.
std::optional<std::string_view> attribute_name(unsigned id);

// Where a key's first element lies in a layout; `end` is behind the whole field. Width 0: the layout has no such field.
struct KeySlot {
  std::uint16_t offset = 0;
  std::uint16_t end = 0;
  std::uint8_t width = 0;
};
KeySlot key_slot(const Layout& layout, MetricsKey key);
// The attribute that carries a key, null when none does.
std::optional<unsigned> key_attribute(MetricsKey key);

// The names under which tables carry a key, best first; every key has at least one row.
struct KeyName {
  MetricsKey key;
  std::string_view name;
};
std::span<const KeyName> all_key_names();

// The little-endian value of `width` bytes.
std::uint64_t load_le(const std::uint8_t* at, std::size_t width);
constexpr std::uint64_t sentinel_of(std::size_t width) {
  return width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width)) - 1;
}

}  // namespace gpuhealth::telemetry
