// SPDX-License-Identifier: Apache-2.0
#include "telemetry/parse.hpp"

#include <cctype>
#include <charconv>
#include <cmath>

namespace gpuhealth::telemetry {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Calls `each(line)` for every non-empty line, stripped; stops when it returns false.
template <class Each>
void for_lines(std::string_view text, Each each) {
  text = trimmed(text);
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = strip(text.substr(0, end));
    if (!line.empty() && !each(line)) return;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A number at the front of `text`, which is shortened by it.
std::optional<double> take_decimal(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;  // it takes "nan" and "inf"
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != std::tolower(static_cast<unsigned char>(prefix[i])))
      return false;
  }
  return true;
}

std::optional<DpmTable::Level> parse_dpm_line(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto label = strip(line.substr(0, colon));
  DpmTable::Level level;
  level.deep_sleep = label == "S";
  if (!level.deep_sleep && !whole_number<unsigned>(label)) return std::nullopt;
  auto rest = strip(line.substr(colon + 1));
  const auto mhz = take_decimal(rest);
  if (!mhz || !starts_with_ignoring_case(rest, "mhz")) return std::nullopt;
  level.mhz = *mhz;
  level.current = rest.find('*') != std::string_view::npos;
  return level;
}

// "NAME count" with the count last: names hold no blanks in the code, but the ABI document shows some that do.
std::optional<std::pair<std::string_view, std::uint64_t>> parse_counter_line(std::string_view line) {
  const auto gap = line.find_last_of(" \t");
  if (gap == std::string_view::npos) return std::nullopt;
  const auto count = whole_number<std::uint64_t>(line.substr(gap + 1));
  if (!count) return std::nullopt;
  return std::pair(strip(line.substr(0, gap)), *count);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  return strip(text.substr(0, text.find('\0')));
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return whole_number<std::int64_t>(trimmed(text));
}

std::optional<std::uint32_t> parse_hex(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return whole_number<std::uint32_t>(text, 16);
}

std::optional<double> parse_link_speed(std::string_view text) {
  text = trimmed(text);
  const auto speed = take_decimal(text);
  if (!speed || !strip(text).starts_with("GT/s")) return std::nullopt;
  return speed;
}

std::optional<DpmTable> parse_dpm_table(std::string_view text) {
  DpmTable table;
  bool sound = true;
  for_lines(text, [&](std::string_view line) {
    const auto level = parse_dpm_line(line);
    sound = level.has_value();
    if (sound) table.levels.push_back(*level);
    return sound;
  });
  if (!sound || table.levels.empty()) return std::nullopt;
  return table;
}

std::optional<DpmSummary> summarise_dpm(std::string_view text) {
  DpmSummary out;
  bool sound = true;
  for_lines(text, [&](std::string_view line) {
    const auto level = parse_dpm_line(line);
    sound = level.has_value();
    if (!sound) return false;
    if (!level->deep_sleep || !level->current) {  // a starred "S" line is the clock now, below all levels
      if (!out.lowest) out.lowest = level->mhz;
      out.highest = level->mhz;
    }
    if (level->current && !out.current) out.current = level->mhz;
    return true;
  });
  if (!sound || !out.lowest || *out.highest == 0) return std::nullopt;  // a table of zeros is none
  return out;
}

std::optional<std::uint64_t> parse_aer_total(std::string_view text) {
  // What every kernel prints ends in the total; only where it does not are the lines taken one by one.
  text = trimmed(text);
  const auto last = text.substr(text.find_last_of('\n') + 1);
  if (last.starts_with("TOTAL_ERR_")) {
    if (const auto counter = parse_counter_line(last)) return counter->second;
  }
  std::optional<std::uint64_t> total;
  std::uint64_t sum = 0;
  bool any = false;
  bool sound = true;
  for_lines(text, [&](std::string_view line) {
    const auto counter = parse_counter_line(line);
    sound = counter.has_value();
    if (!sound) return false;
    any = true;
    if (counter->first.starts_with("TOTAL_ERR_")) {
      total = counter->second;
    } else {
      sum += counter->second;
    }
    return true;
  });
  if (!sound || !any) return std::nullopt;
  return total.value_or(sum);
}

std::vector<std::pair<std::string, std::uint64_t>> parse_aer(std::string_view text) {
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for_lines(text, [&](std::string_view line) {
    if (const auto counter = parse_counter_line(line)) out.emplace_back(std::string(counter->first), counter->second);
    return true;
  });
  return out;
}

std::optional<RasCounts> parse_ras_counts(std::string_view text) {
  RasCounts out;
  bool any = false;
  for_lines(text, [&](std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return true;
    const auto key = strip(line.substr(0, colon));
    const auto count = whole_number<std::uint64_t>(strip(line.substr(colon + 1)));
    if (!count) return true;
    if (key == "ue") out.uncorrectable = count;
    if (key == "ce") out.correctable = count;
    if (key == "de") out.deferred = count;
    any = any || key == "ue" || key == "ce" || key == "de";
    return true;
  });
  if (!any) return std::nullopt;
  return out;
}

// Rows or columns, depending on the ASIC: " 0 BOOTUP_DEFAULT*:", "  1 3D_FULL_SCREEN *:  0", "4 VR            * 5
// COMPUTE". The profile in force is always the word before the star, and its number stands before that word.
std::optional<std::string> parse_power_profile(std::string_view text) {
  std::optional<std::string> name;
  for_lines(text, [&](std::string_view line) {
    const auto star = line.find('*');
    if (star == std::string_view::npos) return true;
    const auto head = strip(line.substr(0, star));
    const auto gap = head.find_last_of(" \t");
    if (gap == std::string_view::npos) return true;
    const auto before = strip(head.substr(0, gap));
    const auto number = before.substr(before.find_last_of(" \t") + 1);
    if (!whole_number<unsigned>(number)) return true;
    name = std::string(head.substr(gap + 1));
    return false;
  });
  return name;
}

PowerState parse_runtime_status(std::string_view text) {
  text = trimmed(text);
  if (text == "suspended") return PowerState::Suspended;
  if (text == "suspending") return PowerState::Suspending;
  if (text == "resuming") return PowerState::Resuming;
  if (text == "active" || text == "unsupported" || text == "error") return PowerState::Active;
  return PowerState::Unknown;
}

}  // namespace gpuhealth::telemetry
