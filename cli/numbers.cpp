// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <ctime>

namespace gpuhealth::cli {
namespace {

std::tm local(WallTime time) {
  const auto seconds = static_cast<std::time_t>(to_microseconds(time) / 1'000'000);
  std::tm out{};
  localtime_r(&seconds, &out);
  return out;
}

std::string format_tm(const std::tm& tm, const char* format) {
  std::array<char, 64> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format, &tm);
  return {buffer.data(), size};
}

struct Generation {
  double speed;
  std::string_view name;
};
constexpr std::array<Generation, 6> kGenerations = {
    {{2.5, "Gen1"}, {5, "Gen2"}, {8, "Gen3"}, {16, "Gen4"}, {32, "Gen5"}, {64, "Gen6"}}};

// What ReadingStatus says, in its order.
constexpr std::array<std::string_view, 9> kInWords = {
    "valid",          "not there",       "asleep",      "GPU is being reset", "management firmware does not answer",
    "cannot be read", "does not answer", "out of date", "not plausible"};

}  // namespace

std::string format_number(double value) {
  if (std::abs(value) >= 100 || value == std::round(value)) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < units.size()) bytes /= 1024, ++unit;
  return format_number(bytes) + " " + std::string(units.at(unit));
}

std::string format_value(double value, Unit unit) {
  switch (unit) {
    case Unit::Byte:
      return format_bytes(value);
    case Unit::Percent:
      return format_number(value) + "%";
    case Unit::Lane:
      return "x" + format_number(value);
    case Unit::Count:
      return fmt::format("{:.0f}", value);
    default:
      return format_number(value) + " " + std::string(to_string(unit));
  }
}

std::string_view in_words(ReadingStatus status) {
  return kInWords.at(static_cast<std::size_t>(status));
}

std::string format_reading(const Reading& reading) {
  const ReadingInfo* row = find_reading(reading.id);
  const Unit unit = row == nullptr ? Unit::Count : row->unit;
  if (reading.status == ReadingStatus::Valid) return format_value(reading.value, unit);
  std::string out(in_words(reading.status));
  if (reading.status == ReadingStatus::Stale) return format_value(reading.value, unit) + " (" + out + ")";
  if (reading.sys_errno != 0 && reading.status != ReadingStatus::Asleep)
    out += " (" + errno_text(reading.sys_errno) + ")";
  return out;
}

std::string format_duration(Duration duration) {
  const auto seconds = duration.count() / 1'000'000;
  if (seconds < 60) return fmt::format("{} s", seconds < 0 ? 0 : seconds);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  const auto minutes = seconds / 60;
  if (minutes < 24 * 60 && minutes % 60 == 0) return fmt::format("{} h", minutes / 60);
  if (minutes < 24 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  const auto days = minutes / (24 * 60);
  return days == 1 ? "1 day" : fmt::format("{} days", days);
}

std::string format_time(WallTime time) {
  return format_tm(local(time), "%Y-%m-%d %H:%M:%S");
}

std::string format_time_short(WallTime time, WallTime now) {
  const std::tm then = local(time);
  const std::tm today = local(now);
  if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday) return format_tm(then, "%H:%M");
  const bool this_week = time <= now && now - time < std::chrono::hours(24 * 6);
  return format_tm(then, this_week ? "%a %H:%M" : "%Y-%m-%d %H:%M");
}

std::string format_since(WallTime since, WallTime now) {
  return "since " + format_time_short(since, now) + " (" + format_duration(now - since) + ")";
}

std::string format_link_speed(double gigatransfers) {
  for (const Generation& g : kGenerations) {
    if (std::abs(g.speed - gigatransfers) < 0.01) return std::string(g.name);
  }
  return format_number(gigatransfers) + " GT/s";
}

std::string errno_text(int sys_errno) {
  const char* text = strerrordesc_np(sys_errno);
  return text == nullptr ? fmt::format("errno {}", sys_errno) : text;
}

std::string errno_name(int sys_errno) {
  const char* name = strerrorname_np(sys_errno);
  return name == nullptr ? fmt::format("errno {}", sys_errno) : name;
}

}  // namespace gpuhealth::cli
