// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <system_error>
#include <vector>

namespace gpuhealth::units {
namespace {

struct Scale {
  std::string_view suffix;
  double factor;
};
constexpr std::int64_t kSecond = 1'000'000;
// The first that divides a time is the one that it is printed in.
constexpr auto kTimes = std::to_array<Scale>({
    {"w", 7.0 * 86400 * kSecond},
    {"d", 86400.0 * kSecond},
    {"h", 3600.0 * kSecond},
    {"m", 60.0 * kSecond},
    {"min", 60.0 * kSecond},
    {"s", 1.0 * kSecond},
    {"ms", 1000},
});
constexpr double kLongest = 3660.0 * 86400 * kSecond;
constexpr auto kSizes = std::to_array<Scale>({
    {"TiB", 1099511627776.0},
    {"GiB", 1073741824.0},
    {"MiB", 1048576.0},
    {"KiB", 1024.0},
    {"B", 1.0},
});

// A number and what stands behind it, without the space between.
struct Split {
  double value = 0;
  std::string_view suffix;
};
std::optional<Split> split(std::string_view text) {
  Split out;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out.value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(out.value)) return std::nullopt;
  out.suffix = text.substr(static_cast<std::size_t>(rest - text.data()));
  // "1e999": an exponent is no unit.
  if (out.suffix.size() > 1 && (out.suffix[0] == 'e' || out.suffix[0] == 'E') &&
      std::string_view("0123456789+-").find(out.suffix[1]) != std::string_view::npos)
    return std::nullopt;
  while (out.suffix.starts_with(' ')) out.suffix.remove_prefix(1);
  return out;
}

template <std::size_t N>
std::optional<double> scaled(const std::array<Scale, N>& table, const Split& split) {
  for (const Scale& row : table)
    if (row.suffix == split.suffix) return split.value * row.factor;
  return std::nullopt;
}

std::vector<Scale> units_of(Unit unit) {
  switch (unit) {
    case Unit::Celsius:
      return {{"C", 1}, {"°C", 1}};
    case Unit::Watt:
      return {{"W", 1}, {"kW", 1000}};
    case Unit::Megahertz:
      return {{"MHz", 1}, {"GHz", 1000}};
    case Unit::Millivolt:
      return {{"mV", 1}, {"V", 1000}};
    case Unit::Rpm:
      return {{"rpm", 1}};
    case Unit::Percent:
      return {{"%", 1}};
    case Unit::Byte:
      return {kSizes.begin(), kSizes.end()};
    case Unit::GigatransferPerSecond:
      return {{"GT/s", 1}};
    case Unit::Lane:
      return {{"", 1}, {"lanes", 1}};
    case Unit::Count:
      return {{"", 1}};
  }
  return {};
}

std::optional<int> clock_minute(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = parse_whole(text.substr(0, 2));
  const auto minute = parse_whole(text.substr(3));
  if (!hour || !minute || *hour < 0 || *minute < 0 || *minute > 59) return std::nullopt;
  const auto all = static_cast<int>(*hour * 60 + *minute);
  return all <= 24 * 60 ? std::optional(all) : std::nullopt;
}

constexpr std::array<std::string_view, 7> kDays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

std::optional<int> day_of(std::string_view text) {
  for (int i = 0; i < 7; ++i)
    if (matches(kDays.at(static_cast<std::size_t>(i)), text)) return i;
  return std::nullopt;
}

// "Mon-Fri", "Sat,Sun"
std::optional<std::uint8_t> days_of(std::string_view text) {
  unsigned days = 0;
  while (true) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = day_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : day_of(part.substr(dash + 1));
    if (!first || !last) return std::nullopt;
    for (int day = *first;; day = (day + 1) % 7) {
      days |= 1U << static_cast<unsigned>(day);
      if (day == *last) break;
    }
    if (comma == std::string_view::npos) return static_cast<std::uint8_t>(days);
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::chrono::year_month_day> parse_day(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = parse_whole(text.substr(0, 4));
  const auto month = parse_whole(text.substr(5, 2));
  const auto day = parse_whole(text.substr(8, 2));
  if (!year || !month || !day || *year < 1970 || *month < 0 || *day < 0) return std::nullopt;
  const std::chrono::year_month_day out{std::chrono::year(static_cast<int>(*year)),
                                        std::chrono::month(static_cast<unsigned>(*month)),
                                        std::chrono::day(static_cast<unsigned>(*day))};
  return out.ok() ? std::optional(out) : std::nullopt;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto parts = split(text);
  if (!parts || !parts->suffix.empty() || text.ends_with(' ')) return std::nullopt;
  return parts->value;
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

Result<Duration> parse_duration(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return fail(ErrorCode::InvalidInput, "is no time; write 90s, 5m, 24h or 7d");
  if (parts->suffix.empty())
    return fail(ErrorCode::InvalidInput,
                parts->value == 0 ? "lacks its unit; write 0s"
                                  : "lacks its unit; write " + std::string(text) + "s or " + std::string(text) + "m");
  const auto us = scaled(kTimes, *parts);
  if (!us) return fail(ErrorCode::InvalidInput, "has no unit of time; known are ms, s, m, h, d and w");
  if (*us < 0 || *us > kLongest) return fail(ErrorCode::InvalidInput, "must be 0s to 3660d");
  return Duration(std::llround(*us));
}

std::string text_of(Duration time) {
  auto us = time.count();
  if (us == 0) return "0s";
  std::string out;
  for (const Scale& row : kTimes) {
    if (row.suffix == "min" || row.suffix == "w") continue;
    const auto factor = static_cast<std::int64_t>(row.factor);
    if (us >= factor) out += fmt::format("{}{}", us / factor, row.suffix), us %= factor;
  }
  return out.empty() ? "0s" : out;
}

Result<double> parse_bytes(std::string_view text) {
  return parse_quantity(text, Unit::Byte);
}

Result<double> parse_quantity(std::string_view text, Unit unit) {
  std::string_view number = text;
  if (unit == Unit::Lane && number.starts_with('x')) number.remove_prefix(1);
  const auto parts = split(number);
  const auto units = units_of(unit);
  auto stated = parts ? number.substr(0, number.size() - parts->suffix.size()) : std::string_view("10");
  while (stated.ends_with(' ')) stated.remove_suffix(1);
  const bool spaced = unit != Unit::Byte && !units.front().suffix.empty();
  const std::string example = fmt::format("{}{}{}", unit == Unit::Byte ? "16" : stated, spaced ? " " : "",
                                          unit == Unit::Byte ? "GiB" : units.front().suffix);
  if (!parts) return fail(ErrorCode::InvalidInput, "is no number; write " + example);
  for (const Scale& row : units)
    if (row.suffix == parts->suffix) return parts->value * row.factor;
  if (parts->suffix.empty()) return fail(ErrorCode::InvalidInput, "lacks its unit; write " + example);
  return fail(ErrorCode::InvalidInput,
              units.front().suffix.empty() ? "is a count and has no unit" : "has another unit; write " + example);
}

std::string text_of(double value, Unit unit) {
  if (unit == Unit::Byte) {
    for (const Scale& row : kSizes)
      if (value >= row.factor) return fmt::format("{:.4g}{}", value / row.factor, row.suffix);
    return fmt::format("{}B", value);
  }
  const auto number = fmt::format("{:.6g}", value);
  if (unit == Unit::Lane) return "x" + number;
  return unit == Unit::Count ? number : number + " " + std::string(to_string(unit));
}

Result<double> parse_times(std::string_view text) {
  const auto parts = split(text);
  if (!parts || parts->suffix != "x") return fail(ErrorCode::InvalidInput, "is no number of times; write 1.5x");
  if (parts->value < 1 || parts->value > 1e9) return fail(ErrorCode::InvalidInput, "must be 1x or more");
  return parts->value;
}

std::optional<WallTime> parse_last_day(std::string_view text) {
  const auto day = parse_day(text);
  if (!day) return std::nullopt;
  return WallTime(std::chrono::sys_days(*day) + std::chrono::days(1));
}

std::optional<WallTime> parse_date_time(std::string_view text) {
  const auto day = parse_day(text.substr(0, 10));
  if (!day) return std::nullopt;
  if (text.size() == 10) return WallTime(std::chrono::sys_days(*day));
  if (text.size() != 16 || (text[10] != ' ' && text[10] != 'T')) return std::nullopt;
  const auto minute = clock_minute(text.substr(11));
  if (!minute) return std::nullopt;
  return WallTime(std::chrono::sys_days(*day) + std::chrono::minutes(*minute));
}

std::string text_of(WallTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day day(days);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - days));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::optional<Window> parse_window(std::string_view text) {
  Window out;
  if (const auto space = text.find(' '); space != std::string_view::npos) {
    const auto days = days_of(text.substr(0, space));
    if (!days) return std::nullopt;
    out.days = *days;
    text.remove_prefix(space + 1);
  }
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto from = clock_minute(text.substr(0, dash));
  const auto to = clock_minute(text.substr(dash + 1));
  if (!from || !to || *from == *to || *from == 24 * 60) return std::nullopt;
  out.from_minute = *from;
  out.to_minute = *to;
  return out;
}

bool within(const Window& window, WallTime now, int utc_offset_s) {
  const auto local = now + std::chrono::seconds(utc_offset_s);
  const auto days = std::chrono::floor<std::chrono::days>(local);
  const auto minute = static_cast<int>(std::chrono::floor<std::chrono::minutes>(local - days).count());
  // ISO: Monday is 1.
  const unsigned today = std::chrono::weekday(days).iso_encoding() - 1;
  const auto on = [&](unsigned day) { return (window.days >> day & 1U) != 0; };
  if (window.from_minute < window.to_minute)
    return on(today) && minute >= window.from_minute && minute < window.to_minute;
  return (on(today) && minute >= window.from_minute) || (on((today + 6) % 7) && minute < window.to_minute);
}

std::string text_of(const Window& window) {
  std::string days;
  if (window.days != 0x7f) {
    for (unsigned i = 0; i < 7; ++i)
      if ((window.days >> i & 1U) != 0) days += (days.empty() ? "" : ",") + std::string(kDays.at(i));
    days += " ";
  }
  return fmt::format("{}{:02}:{:02}-{:02}:{:02}", days, window.from_minute / 60, window.from_minute % 60,
                     window.to_minute / 60, window.to_minute % 60);
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == lower(text[t]))) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace gpuhealth::units
