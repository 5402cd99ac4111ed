// SPDX-License-Identifier: Apache-2.0
// Throttle reasons as a set, independent of any ASIC's bit order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gpuhealth {

enum class ThrottleReason : std::uint8_t {
#define THROTTLE(id, name, kind, text) id,
#include "core/throttle.def"
#undef THROTTLE
  Count,
};
static_assert(static_cast<int>(ThrottleReason::Count) <= 64, "ThrottleSet is one 64-bit word");

enum class ThrottleKind : std::uint8_t { Thermal, Power, Current, Other };

struct ThrottleInfo {
  ThrottleReason reason;
  std::string_view name;  // "TEMP_HOTSPOT"
  ThrottleKind kind;
  std::string_view text;
};
std::span<const ThrottleInfo> all_throttle_reasons();
std::optional<ThrottleReason> throttle_reason_from(std::string_view name);

class ThrottleSet {
 public:
  constexpr ThrottleSet() = default;
  constexpr explicit ThrottleSet(std::uint64_t bits) : bits_(bits) {}
  constexpr void insert(ThrottleReason r) { bits_ |= bit(r); }
  constexpr void erase(ThrottleReason r) { bits_ &= ~bit(r); }
  [[nodiscard]] constexpr bool contains(ThrottleReason r) const { return (bits_ & bit(r)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] ThrottleSet of_kind(ThrottleKind kind) const;
  friend constexpr bool operator==(ThrottleSet, ThrottleSet) = default;

 private:
  static constexpr std::uint64_t bit(ThrottleReason r) { return std::uint64_t{1} << static_cast<unsigned>(r); }
  std::uint64_t bits_ = 0;
};

}  // namespace gpuhealth
