// SPDX-License-Identifier: Apache-2.0
// How times, sizes, quantities, days and windows are written by people, in policies and on command lines, and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/reading.hpp"

namespace gpuhealth::units {

// "90s", "5m", "24h", "7d", "500ms", "2w"; at most ten years. The error's text says what is missing.
Result<Duration> parse_duration(std::string_view text);
std::string text_of(Duration time);  // "5m", "1h30m"

Result<double> parse_bytes(std::string_view text);  // "64MiB"
// "95 C", "250W", "16 GT/s", "x8"; counts and lanes may be bare numbers.
Result<double> parse_quantity(std::string_view text, Unit unit);
std::string text_of(double value, Unit unit);               // "95 C"
Result<double> parse_times(std::string_view text);          // "1.5x"
std::optional<double> parse_number(std::string_view text);  // all of it, finite
std::optional<std::int64_t> parse_whole(std::string_view text);

// The end of the day, UTC.
std::optional<WallTime> parse_last_day(std::string_view text);
std::optional<WallTime> parse_date_time(std::string_view text);  // "2026-11-30 09:00", UTC
std::string text_of(WallTime time);                              // "2026-11-30T09:00:00Z"

// Local time, of some days of the week. One that ends before it begins goes on into the next day.
struct Window {
  std::uint8_t days = 0x7f;  // bit 0: Monday
  int from_minute = 0;
  int to_minute = 0;
  friend bool operator==(const Window&, const Window&) = default;
};
std::optional<Window> parse_window(std::string_view text);
bool within(const Window& window, WallTime now, int utc_offset_s);
std::string text_of(const Window& window);

// * and ? as in a shell; capitals and small letters are the same.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace gpuhealth::units
