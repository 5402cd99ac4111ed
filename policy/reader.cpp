// SPDX-License-Identifier: Apache-2.0
#include "policy/reader.hpp"

#include <algorithm>

#include "core/nearest.hpp"
#include "core/sorted.hpp"

namespace gpuhealth::policy {
namespace {

constexpr std::size_t kFewWords = 8;
constexpr std::size_t kMostText = 2000;

std::string stands_there(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::Kind::Null:
      return "nothing stands there";
    case yaml::Kind::List:
      return "a list stands there";
    case yaml::Kind::Map:
      return "keys stand there";
    case yaml::Kind::Scalar:
      return yaml::shown(node.text) + " stands there";
  }
  return "";
}

}  // namespace

void Mistakes::add(yaml::Place at, std::string text, std::string_view found, std::string hint) {
  if (list_.size() > kMostMistakes) return;
  if (list_.size() == kMostMistakes) {
    list_.push_back({{}, "more mistakes follow", "", ""});
    return;
  }
  list_.push_back({at, std::move(text), std::string(found.substr(0, 200)), std::move(hint)});
}

void Mistakes::value(const yaml::Node& node, std::string_view key, std::string_view what, std::string hint) {
  const bool scalar = node.kind == yaml::Kind::Scalar;
  add(node.at,
      std::string(key) + ": " + (scalar ? yaml::shown(node.text) : stands_there(node) + ", which") + " " +
          std::string(what),
      node.text, std::move(hint));
}

void Mistakes::unknown(const yaml::Node& node, std::string_view what, std::span<const std::string> words) {
  if (node.kind != yaml::Kind::Scalar) {
    add(node.at, std::string(what) + ": a word is expected, " + stands_there(node), node.text, hint_among("", words));
  } else {
    add(node.at, std::string(what) + ": there is no " + yaml::shown(node.text), node.text,
        hint_among(node.text, words));
  }
}

std::vector<yaml::Mistake> Mistakes::take() {
  sort_stable(list_, [](const yaml::Mistake& a, const yaml::Mistake& b) {
    // What concerns the file as a whole comes last.
    return (a.at.line > 0) != (b.at.line > 0) ? a.at.line > 0 : a.at < b.at;
  });
  return std::move(list_);
}

std::string hint_among(std::string_view typed, std::span<const std::string> words) {
  if (words.empty()) return "";
  const std::string near = typed.empty() ? "" : nearest(typed, words);
  if (!near.empty()) return "did you mean \"" + near + "\"?";
  if (words.size() > kFewWords) return "";
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "known are " : ", ") + word;
  return out;
}

std::string kind_of(const std::optional<yaml::Node>& root) {
  if (!root || root->kind != yaml::Kind::Map) return "";
  for (std::size_t i = 0; i < root->keys.size() && i < root->items.size(); ++i)
    if (root->keys[i].text == "kind") return root->items[i].text;
  return "";
}

Fields read_map(const yaml::Node& node, std::string_view what, std::span<const KeyRow> keys, Mistakes& mistakes) {
  Fields out;
  out.at = node.at;
  std::vector<std::string> known;
  for (const KeyRow& row : keys) known.emplace_back(row.key);
  if (node.kind != yaml::Kind::Map) {
    mistakes.add(node.at, std::string(what) + " must hold keys; " + stands_there(node), node.text,
                 "such as \"" + known.front() + ": …\"");
    return out;
  }
  std::map<std::string_view, yaml::Place> seen;
  for (std::size_t i = 0; i < node.keys.size() && i < node.items.size(); ++i) {
    const yaml::Node& key = node.keys[i];
    if (key.kind != yaml::Kind::Scalar) {
      mistakes.add(key.at, "a key must be a word; " + stands_there(key));
      continue;
    }
    if (const auto [it, fresh] = seen.emplace(key.text, key.at); !fresh) {
      mistakes.add(key.at, yaml::shown(key.text) + " stands twice", key.text,
                   "the first is at line " + std::to_string(it->second.line));
      continue;
    }
    if (std::ranges::find(known, key.text) == known.end()) {
      mistakes.add(key.at, std::string(what) + " has no key " + yaml::shown(key.text), key.text,
                   hint_among(key.text, known));
      continue;
    }
    out.values.emplace(key.text, &node.items[i]);
  }
  for (const KeyRow& row : keys)
    if (row.required && !seen.contains(row.key))
      mistakes.add(node.at, std::string(what) + " lacks its key \"" + std::string(row.key) + "\"");
  return out;
}

std::optional<std::string> read_text(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  if (node.kind != yaml::Kind::Scalar) {
    mistakes.value(node, key, "is no text");
  } else if (node.text.size() > kMostText) {
    mistakes.value(node, key, "is longer than 2000 letters");
  } else {
    return node.text;
  }
  return std::nullopt;
}

std::optional<std::string> read_name(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  const auto fine = [](unsigned char c) {
    return (std::isalnum(c) != 0 && c < 0x80) || c == '.' || c == '_' || c == '-';
  };
  if (node.kind == yaml::Kind::Scalar && !node.text.empty() && node.text.size() <= 64 &&
      std::ranges::all_of(node.text, fine))
    return node.text;
  mistakes.value(node, key, "is no name", "letters, digits, . _ and -, at most 64");
  return std::nullopt;
}

std::optional<bool> read_flag(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  if (node.kind == yaml::Kind::Scalar && !node.quoted) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
  }
  mistakes.value(node, key, "is neither true nor false");
  return std::nullopt;
}

std::optional<std::int64_t> read_whole(const yaml::Node& node, std::string_view key, std::int64_t low,
                                       std::int64_t high, Mistakes& mistakes) {
  const auto value = node.kind == yaml::Kind::Scalar ? parse_whole(node.text) : std::nullopt;
  if (!value) {
    mistakes.value(node, key, "is no whole number");
  } else if (*value < low || *value > high) {
    mistakes.value(node, key, "must be " + std::to_string(low) + " to " + std::to_string(high));
  } else {
    return value;
  }
  return std::nullopt;
}

std::optional<Duration> read_duration(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  if (node.kind != yaml::Kind::Scalar) {
    mistakes.value(node, key, "is no time; write 90s, 5m, 24h or 7d");
    return std::nullopt;
  }
  const auto value = parse_duration(node.text);
  if (value) return *value;
  mistakes.value(node, key, value.error().text);
  return std::nullopt;
}

std::optional<std::size_t> read_word(const yaml::Node& node, std::string_view key, std::span<const std::string> words,
                                     Mistakes& mistakes) {
  const auto at = node.kind == yaml::Kind::Scalar ? std::ranges::find(words, node.text) : words.end();
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  mistakes.unknown(node, key, words);
  return std::nullopt;
}

std::vector<const yaml::Node*> read_list(const yaml::Node& node, std::string_view key, std::size_t most,
                                         Mistakes& mistakes) {
  std::vector<const yaml::Node*> out;
  if (node.kind != yaml::Kind::List) {
    mistakes.value(node, key, "is no list", "put each entry behind a \"-\"");
    return out;
  }
  if (node.items.empty()) mistakes.add(node.at, std::string(key) + ": the list is empty");
  if (node.items.size() > most)
    mistakes.add(node.at, std::string(key) + ": " + std::to_string(node.items.size()) + " entries are more than the " +
                              std::to_string(most) + " that there may be");
  for (const yaml::Node& item : node.items) {
    if (out.size() == most) break;
    out.push_back(&item);
  }
  return out;
}

std::vector<std::string> read_texts(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  std::vector<std::string> out;
  if (node.kind == yaml::Kind::Scalar) {
    if (auto text = read_text(node, key, mistakes)) out.push_back(std::move(*text));
    return out;
  }
  for (const yaml::Node* item : read_list(node, key, 256, mistakes))
    if (auto text = read_text(*item, key, mistakes)) out.push_back(std::move(*text));
  return out;
}

}  // namespace gpuhealth::policy
