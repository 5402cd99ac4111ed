// SPDX-License-Identifier: Apache-2.0
#include "actions/params.hpp"

#include <algorithm>

#include "core/nearest.hpp"
#include "core/units.hpp"

namespace gpuhealth::actions {
namespace {

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
      return units::parse_number(value) ? "" : "a number";
    case ParamKind::Word:
      return is_word(value) ? "" : "one word of letters, digits and _-.+~:";
    case ParamKind::Words:
      return std::ranges::all_of(split(value), is_word) && !value.empty() ? "" : "words joined by commas";
    case ParamKind::Text:
      return value.size() <= 4096 ? "" : "a text of at most 4096 bytes";
    case ParamKind::TimeSpan:
      return units::parse_duration(value) ? "" : "a time such as 30s, 5m or 2h";
    case ParamKind::Bytes:
      return units::parse_bytes(value) ? "" : "a size such as 64MiB";
    case ParamKind::Window:
      return units::parse_window(value) ? "" : "a window such as 02:00-05:00 or Mon-Fri 02:00-05:00";
    case ParamKind::Urgency:
      return value == "low" || value == "normal" || value == "critical" ? "" : "low, normal or critical";
  }
  return "";
}

}  // namespace

Result<Params> Params::read(const ActionRequest& request) {
  Params out;
  const auto known = params_of(request.kind);
  const std::string action(to_string(request.kind));
  for (const auto& [name, value] : request.params) {
    const auto row = std::ranges::find(known, name, &ActionParam::name);
    if (row == known.end()) {
      std::string text = action + " takes no \"" + name + "\"";
      std::vector<std::string_view> names;
      names.reserve(known.size());
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
  return units::parse_number(text(name));
}
std::string Params::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}
std::optional<units::Window> Params::window(std::string_view name) const {
  return units::parse_window(text(name));
}
std::vector<std::string> Params::words(std::string_view name) const {
  return split(text(name));
}
std::chrono::milliseconds Params::span(std::string_view name) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(units::parse_duration(text(name)).value_or(Duration(0)));
}
std::uint64_t Params::bytes(std::string_view name) const {
  return static_cast<std::uint64_t>(units::parse_bytes(text(name)).value_or(0));
}

}  // namespace gpuhealth::actions
