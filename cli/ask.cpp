// SPDX-License-Identifier: Apache-2.0
#include "cli/ask.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <ctime>
#include <numeric>
#include <optional>

#include "core/nearest.hpp"
#include "core/pci.hpp"

namespace gpuhealth::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Period {
  std::string_view suffix;
  std::int64_t seconds;
};
constexpr std::array<Period, 5> kPeriods = {{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}, {"w", 604'800}}};

std::optional<WallTime> parse_period(std::string_view text, WallTime now) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || number > 100'000'000) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text == "min") text = "m";
  for (const Period& period : kPeriods) {
    if (text == period.suffix) return now - std::chrono::seconds(number * period.seconds);
  }
  return std::nullopt;
}

std::optional<WallTime> parse_date(const std::string& text) {
  for (const char* format :
       {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm tm{};
    const char* end = strptime(text.c_str(), format, &tm);
    if (end == nullptr || *end != '\0') continue;
    const int day = tm.tm_mday;
    tm.tm_isdst = -1;
    const std::time_t seconds = std::mktime(&tm);
    if (seconds == -1 || tm.tm_mday != day) return std::nullopt;  // 31 November
    return wall_from_microseconds(static_cast<std::int64_t>(seconds) * 1'000'000);
  }
  return std::nullopt;
}

std::string list_of(std::span<const dbus::DeviceView> devices) {
  std::string out;
  for (const auto& d : devices) out += "\n  " + d.pci + "  " + (d.name.empty() ? "unnamed GPU" : d.name);
  return out;
}

// The one item for which `matches` holds; null when none or several do.
template <class T, class Match>
const T* only(std::span<const T> items, Match matches) {
  const T* found = nullptr;
  for (const T& item : items) {
    if (!matches(item)) continue;
    if (found != nullptr) return nullptr;
    found = &item;
  }
  return found;
}

}  // namespace

Result<WallTime> parse_when(std::string_view text, WallTime now) {
  if (text == "now") return now;
  if (const auto period = parse_period(text, now)) return *period;
  if (const auto date = parse_date(std::string(text))) return *date;
  return fail(ErrorCode::InvalidInput, "\"" + std::string(text) +
                                           "\" is not a time: give a period before now (90m, 24h, 7d) or a local date "
                                           "(2026-11-01, \"2026-11-01 14:00\")");
}

Result<const ReadingInfo*> parse_metric(std::string_view text) {
  const ReadingInfo* row = find_reading(text);
  if (row != nullptr && row->keep == Keep::History) return row;
  if (row != nullptr) {
    return fail(ErrorCode::InvalidInput,
                "no history is kept of " + std::string(text) + ", only its last value: see gpuhealthctl devices");
  }
  std::vector<std::string> names;
  std::string kept;
  for (const ReadingInfo& r : all_readings()) {
    if (r.keep != Keep::History) continue;
    names.emplace_back(r.name);
    if (!r.name.starts_with("ras.")) kept += (kept.empty() ? "" : ", ") + names.back();
  }
  const std::string near = nearest(text, names);
  std::string hint = near.empty() ? "metrics with a history: " + kept : "did you mean " + near + "?";
  return fail(ErrorCode::InvalidInput, "there is no metric \"" + std::string(text) + "\"; " + hint);
}

Result<const dbus::DeviceView*> choose_device(std::span<const dbus::DeviceView> devices, std::string_view text) {
  const std::string wanted = lower(text);
  const auto address = parse_pci_address(wanted);
  const auto exact = std::ranges::find_if(
      devices, [&](const dbus::DeviceView& d) { return d.id == text || (address && d.pci == to_string(*address)); });
  if (exact != devices.end()) return &*exact;
  if (!wanted.empty()) {
    const auto* by_id = only(devices, [&](const dbus::DeviceView& d) { return lower(d.id).starts_with(wanted); });
    if (by_id != nullptr) return by_id;
    const auto* by_name =
        only(devices, [&](const dbus::DeviceView& d) { return lower(d.name).find(wanted) != std::string::npos; });
    if (by_name != nullptr) return by_name;
  }
  if (devices.empty()) return fail(ErrorCode::NotFound, "there is no GPU on this machine");
  return fail(ErrorCode::NotFound,
              "\"" + std::string(text) + "\" does not name one GPU; this machine has:" + list_of(devices));
}

Result<const Condition*> choose_condition(std::span<const Condition> conditions, std::string_view text) {
  const auto exact = std::ranges::find(conditions, text, &Condition::id);
  if (exact != conditions.end()) return &*exact;
  if (!text.empty()) {
    const auto* by_start = only(conditions, [&](const Condition& c) { return c.id.starts_with(text); });
    if (by_start != nullptr) return by_start;
  }
  std::string fitting;
  for (const Condition& c : conditions) {
    if (c.id.starts_with(text)) fitting += "\n  " + c.id;
  }
  if (!fitting.empty())
    return fail(ErrorCode::NotFound, "\"" + std::string(text) + "\" fits several conditions:" + fitting);
  return fail(ErrorCode::NotFound, "there is no condition \"" + std::string(text) +
                                       "\"; gpuhealthctl conditions --all lists them with their ids");
}

}  // namespace gpuhealth::cli
