// SPDX-License-Identifier: Apache-2.0
#include "actions/params.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/nearest.hpp"

namespace gpuhealth::actions {
namespace {

std::optional<double> number_from(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

std::optional<std::int64_t> with_unit(std::string_view text, std::span<const Unit> units) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  const std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  std::int64_t out = 0;
  if (unit == units.end() || __builtin_mul_overflow(value, unit->factor, &out)) return std::nullopt;
  return out;
}

std::optional<int> minute_from(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  int hour = 0;
  int minute = 0;
  const auto a = std::from_chars(text.data(), text.data() + 2, hour);
  const auto b = std::from_chars(text.data() + 3, text.data() + 5, minute);
  if (a.ptr != text.data() + 2 || b.ptr != text.data() + 5 || hour < 0 || hour > 23 || minute < 0 || minute > 59)
    return std::nullopt;
  return hour * 60 + minute;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.+~:").find(c) != std::string_view::npos;
  });
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

// What the value must be, in words; empty when it is.
std::string_view wrong(ParamKind kind, const std::string& value) {
  switch (kind) {
    case ParamKind::Flag:
      return value == "true" || value == "false" ? "" : "true or false";
    case ParamKind::Number:
      return number_from(value) ? "" : "a number";
    case ParamKind::Word:
      return is_word(value) ? "" : "one word of letters, digits and _-.+~:";
    case ParamKind::Words:
      return std::ranges::all_of(split(value), is_word) && !value.empty() ? "" : "words joined by commas";
    case ParamKind::Text:
      return value.size() <= 4096 ? "" : "a text of at most 4096 bytes";
    case ParamKind::TimeSpan:
      return span_from(value) ? "" : "a time such as 30s, 5m or 2h";
    case ParamKind::Bytes:
      return bytes_from(value) ? "" : "a size such as 64MiB";
    case ParamKind::Window:
      return within_window(value, 0) ? "" : "a window such as 02:00-05:00";
    case ParamKind::Urgency:
      return value == "low" || value == "normal" || value == "critical" ? "" : "low, normal or critical";
  }
  return "";
}

}  // namespace

std::optional<std::chrono::milliseconds> span_from(std::string_view text) {
  static constexpr std::array<Unit, 5> kUnits = {
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
  const auto value = with_unit(text, kUnits);
  if (!value) return std::nullopt;
  return std::chrono::milliseconds(*value);
}

std::optional<std::uint64_t> bytes_from(std::string_view text) {
  static constexpr std::array<Unit, 7> kUnits = {
      {{"", 1}, {"B", 1}, {"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}, {"kB", 1000}, {"MB", 1'000'000}}};
  const auto value = with_unit(text, kUnits);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<bool> within_window(std::string_view window, int minute_of_day) {
  const auto dash = window.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto from = minute_from(window.substr(0, dash));
  const auto to = minute_from(window.substr(dash + 1));
  if (!from || !to) return std::nullopt;
  if (*from <= *to) return minute_of_day >= *from && minute_of_day < *to;
  return minute_of_day >= *from || minute_of_day < *to;
}

Result<Params> Params::read(const ActionRequest& request) {
  Params out;
  const auto known = params_of(request.kind);
  const std::string action(to_string(request.kind));
  for (const auto& [name, value] : request.params) {
    const auto row = std::ranges::find(known, name, &ActionParam::name);
    if (row == known.end()) {
      std::string text = action + " takes no \"" + name + "\"";
      std::vector<std::string_view> names;
      for (const ActionParam& param : known) names.push_back(param.name);
      if (const auto near = nearest(name, names); !near.empty()) text += "; did you mean " + std::string(near) + "?";
      return fail(ErrorCode::InvalidInput, text);
    }
    if (value.empty()) continue;
    if (const auto must = wrong(row->kind, value); !must.empty())
      return fail(ErrorCode::InvalidInput,
                  action + ": " + name + " must be " + std::string(must) + ", not \"" + value + "\"");
    out.values_[name] = value;
  }
  for (const ActionParam& param : known) {
    if (out.values_.contains(param.name)) continue;
    if (param.required)
      return fail(ErrorCode::InvalidInput,
                  action + " needs " + std::string(param.name) + ": " + std::string(param.meaning));
    if (!param.standard.empty()) out.values_[std::string(param.name)] = param.standard;
  }
  return out;
}

bool Params::flag(std::string_view name) const {
  return text(name) == "true";
}
std::optional<double> Params::number(std::string_view name) const {
  return number_from(text(name));
}
std::string Params::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}
std::vector<std::string> Params::words(std::string_view name) const {
  return split(text(name));
}
std::chrono::milliseconds Params::span(std::string_view name) const {
  return span_from(text(name)).value_or(std::chrono::milliseconds(0));
}
std::uint64_t Params::bytes(std::string_view name) const {
  return bytes_from(text(name)).value_or(0);
}

}  // namespace gpuhealth::actions
