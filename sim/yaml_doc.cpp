// SPDX-License-Identifier: Apache-2.0
#include "sim/yaml_doc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/nearest.hpp"
#include "sim/scenario.hpp"

namespace gpuhealth::sim {
namespace {

constexpr std::size_t kMostErrors = 50;

std::string hint(std::string_view word, std::span<const std::string_view> known) {
  const std::string best = nearest(word, known);
  if (!best.empty()) return fmt::format("; did you mean \"{}\"?", best);
  return fmt::format("; known are {}", fmt::join(known, ", "));
}

std::string shown(const std::string& text) {
  std::string out = text.substr(0, 40);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return "\"" + out + (text.size() > 40 ? "…\"" : "\"");
}

}  // namespace

void YamlDoc::say(const YAML::Mark& where, const std::string& what) {
  if (errors_.size() >= kMostErrors) return;
  const std::string place = where.is_null() ? "" : fmt::format(":{}:{}", where.line + 1, where.column + 1);
  errors_.push_back(file_ + place + ": " + what);
}

std::map<std::string, YAML::Node> YamlDoc::map(const YAML::Node& node, std::string_view what,
                                               std::span<const std::string_view> known) {
  std::map<std::string, YAML::Node> out;
  if (!node.IsMap()) {
    say(node, fmt::format("{} must hold keys, such as \"{}: …\"", what, known.front()));
    return out;
  }
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      say(entry.first, "a key must be a word");
      continue;
    }
    const auto& key = entry.first.Scalar();
    if (std::ranges::find(known, key) == known.end()) {
      say(entry.first, fmt::format("{} has no key {}{}", what, shown(key), hint(key, known)));
    } else if (!out.emplace(key, entry.second).second) {
      say(entry.first, shown(key) + " stands twice");
    }
  }
  return out;
}

std::vector<YAML::Node> YamlDoc::list(const YAML::Node& node, std::string_view what) {
  std::vector<YAML::Node> out;
  if (!node.IsSequence()) {
    say(node, fmt::format("{} must be a list, each entry after a \"-\"", what));
    return out;
  }
  for (const auto& entry : node) out.push_back(entry);
  return out;
}

std::string YamlDoc::text(const YAML::Node& node, std::string_view what) {
  if (node.IsScalar()) return node.Scalar();
  say(node, fmt::format("{} must be a text", what));
  return {};
}

bool YamlDoc::flag(const YAML::Node& node, std::string_view what) {
  bool value = false;
  if (node.IsScalar() && YAML::convert<bool>::decode(node, value)) return value;
  say(node, fmt::format("{} must be true or false", what));
  return false;
}

double YamlDoc::number(const YAML::Node& node, std::string_view what, double low, double high) {
  double value = 0;
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    say(node, fmt::format("{} must be a number, not {}", what, shown(text)));
    return low;
  }
  if (value < low || value > high) {
    say(node, fmt::format("{} must be {} to {}", what, low, high));
    return low;
  }
  return value;
}

double YamlDoc::seconds(const YAML::Node& node, std::string_view what) {
  const auto value = node.IsScalar() ? parse_seconds(node.Scalar()) : std::nullopt;
  if (!value) say(node, fmt::format("{} must be a time, such as 30s, 500ms or 2min", what));
  return value.value_or(0);
}

std::size_t YamlDoc::one_of(const YAML::Node& node, std::string_view what, std::span<const std::string_view> words) {
  const std::string word = node.IsScalar() ? node.Scalar() : "";
  const auto it = std::ranges::find(words, word);
  if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
  say(node, fmt::format("{}: there is no {}{}", what, shown(word), hint(word, words)));
  return 0;
}

Error YamlDoc::error() const {
  return {ErrorCode::InvalidInput, fmt::format("{}", fmt::join(errors_, "\n"))};
}

}  // namespace gpuhealth::sim
