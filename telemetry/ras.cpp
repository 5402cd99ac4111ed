// SPDX-License-Identifier: Apache-2.0
#include "telemetry/ras.hpp"

#include <charconv>

#include "telemetry/klog/false_counts.hpp"

namespace gpuhealth::telemetry {
namespace {

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<std::uint64_t> number_behind(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  auto rest = line.substr(at + key.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace

std::optional<BadPages> parse_bad_pages(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  BadPages out;
  while (!text.empty()) {
    const bool whole = text.find('\n') != std::string_view::npos;
    const auto line = take_line(text);
    if (line.empty()) continue;
    if (!line.starts_with("0x")) return std::nullopt;
    if (!whole && line.size() < 27) continue;
    const auto flag = line.find_last_not_of(' ');
    if (flag < 2 || line.substr(flag - 2, 2) != ": ") return std::nullopt;
    if (line[flag] == 'R') ++out.retired;
    if (line[flag] == 'P') ++out.pending;
    if (line[flag] == 'F') ++out.failed;
  }
  return out;
}

std::optional<RasEvents> parse_ras_events(std::string_view text) {
  RasEvents out;
  bool known = false;
  while (!text.empty()) {
    const auto line = take_line(text);
    if (const auto sequence = number_behind(line, "current seqno:")) {
      out.sequence = *sequence;
      known = true;
    }
    const auto count = number_behind(line, "count:");
    if (!count) continue;
    if (line.starts_with("Fatal Error")) out.fatal = *count;
    if (line.starts_with("Poison Creation")) out.poison_created = *count;
    if (line.starts_with("Poison Consumption")) out.poison_consumed = *count;
  }
  return known ? std::optional(out) : std::nullopt;
}

bool is_false_ras_count(std::uint64_t count) {
  return klog::is_false_count(count);
}

}  // namespace gpuhealth::telemetry
