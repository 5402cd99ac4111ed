// SPDX-License-Identifier: Apache-2.0
#include "actions/profile_table.hpp"

#include <algorithm>
#include <charconv>

namespace gpuhealth::actions {
namespace {

std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::optional<int> take_number(std::string_view& text) {
  skip_blanks(text);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool in_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<int> take_mhz(std::string_view& text) {
  const auto value = take_number(text);
  if (!value || (!text.starts_with("Mhz") && !text.starts_with("MHz") && !text.starts_with("MHZ"))) return std::nullopt;
  text.remove_prefix(3);
  return value;
}

}  // namespace

std::vector<PowerProfile> parse_profiles(std::string_view text) {
  std::vector<PowerProfile> out;
  while (!text.empty()) {
    auto line = take_line(text);
    PowerProfile profile;
    const auto number = take_number(line);
    if (!number || *number < 0 || line.empty() || line.front() != ' ') continue;
    skip_blanks(line);
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(line, in_name) - line.begin());
    profile.number = *number;
    profile.name = line.substr(0, length);
    line.remove_prefix(length);
    if (std::ranges::none_of(profile.name, [](char c) { return c >= 'A' && c <= 'Z'; })) continue;
    skip_blanks(line);
    profile.active = line.starts_with('*');
    out.push_back(std::move(profile));
  }
  return out;
}

std::optional<ClockTable> parse_clock_table(std::string_view text) {
  ClockTable out;
  bool found = false;
  std::string section;
  while (!text.empty()) {
    auto line = take_line(text);
    if (line.starts_with("OD_")) {
      section = line.substr(0, line.find(':'));
      continue;
    }
    if (section == "OD_SCLK") {
      const auto level = take_number(line);
      if (!level || !line.starts_with(':')) continue;
      line.remove_prefix(1);
      const auto mhz = take_mhz(line);
      if (!mhz) continue;
      if (!found || *level >= out.level) {
        out.level = *level;
        out.highest_mhz = *mhz;
      }
      found = true;
    } else if (section == "OD_RANGE" && line.starts_with("SCLK:")) {
      line.remove_prefix(5);
      out.low_mhz = take_mhz(line);
      out.high_mhz = take_mhz(line);
    }
  }
  if (!found || out.highest_mhz <= 0) return std::nullopt;
  return out;
}

}  // namespace gpuhealth::actions
