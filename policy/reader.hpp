// SPDX-License-Identifier: Apache-2.0
// Reads sections of a YAML tree by the table of keys, and collects every mistake with its place. What policies and
// policy tests are read with.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.hpp"
#include "policy/policy.hpp"

namespace gpuhealth::policy {

class Mistakes {
 public:
  void add(yaml::Place at, std::string text, std::string_view found = {}, std::string hint = {});
  // "KEY: FOUND is wrong; hint", the offending text in quotes.
  void value(const yaml::Node& node, std::string_view key, std::string_view what, std::string hint = {});
  // `found` is none of `words`: the nearest, or all when they are few.
  void unknown(const yaml::Node& node, std::string_view what, std::span<const std::string> words);
  [[nodiscard]] bool empty() const { return list_.empty(); }
  std::vector<yaml::Mistake> take();  // by place

 private:
  std::vector<yaml::Mistake> list_;
};

// "did you mean …?", or "known are …" when they are few, or nothing.
std::string hint_among(std::string_view typed, std::span<const std::string> words);

struct KeyRow {
  std::string_view key;
  bool required = false;
};
// The entries of a map: unknown, repeated and missing keys are mistakes.
struct Fields {
  yaml::Place at;
  std::map<std::string, const yaml::Node*, std::less<>> values;
  [[nodiscard]] const yaml::Node* find(std::string_view key) const {
    const auto it = values.find(key);
    return it == values.end() ? nullptr : it->second;
  }
};
Fields read_map(const yaml::Node& node, std::string_view what, std::span<const KeyRow> keys, Mistakes& mistakes);

// One value; what is wrong with it is said, and then it is nothing.
std::optional<std::string> read_text(const yaml::Node& node, std::string_view key, Mistakes& mistakes);
std::optional<std::string> read_name(const yaml::Node& node, std::string_view key, Mistakes& mistakes);
std::optional<bool> read_flag(const yaml::Node& node, std::string_view key, Mistakes& mistakes);
std::optional<std::int64_t> read_whole(const yaml::Node& node, std::string_view key, std::int64_t low,
                                       std::int64_t high, Mistakes& mistakes);
std::optional<Duration> read_duration(const yaml::Node& node, std::string_view key, Mistakes& mistakes);
std::optional<std::size_t> read_word(const yaml::Node& node, std::string_view key, std::span<const std::string> words,
                                     Mistakes& mistakes);
// One word or a list of them.
std::vector<const yaml::Node*> read_list(const yaml::Node& node, std::string_view key, std::size_t most,
                                         Mistakes& mistakes);
std::vector<std::string> read_texts(const yaml::Node& node, std::string_view key, Mistakes& mistakes);

// The list behind `do:`, by core/action.def.
std::vector<PlannedAction> read_actions(const yaml::Node& node, Mistakes& mistakes);
std::optional<PlannedAction> read_action(const yaml::Node& node, Mistakes& mistakes);
// The nodes of one action: its name and parameters; for what only looks at some of them.
struct ActionNodes {
  const yaml::Node* name = nullptr;
  const yaml::Node* params = nullptr;  // null: none
};
std::optional<ActionNodes> action_nodes(const yaml::Node& node, Mistakes& mistakes);
std::optional<std::string> read_param(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes);

// The top level's `kind`; empty when there is none.
std::string kind_of(const std::optional<yaml::Node>& root);

// A rule's `when` and its like.
class WhenReader {
 public:
  explicit WhenReader(Mistakes& mistakes) : mistakes_(mistakes) {}
  std::optional<When> read(const yaml::Node& node, bool revert, int depth = 0);
  std::optional<ConditionMatch> condition(const yaml::Node& node);
  std::optional<ReadingMatch> reading(const yaml::Node& node);
  std::optional<CanaryMatch> canary(const yaml::Node& node);
  std::optional<EventMatch> event(const yaml::Node& node);
  // Names of rules that `after` mentions, to be checked when all are known.
  std::vector<const yaml::Node*> after;
  // Rules that reverting may begin with: `for` of revert_when.
  std::optional<Duration> hold;

 private:
  std::optional<Group> group(Group::Kind kind, std::string_view key, const yaml::Node& node, int depth);
  Mistakes& mistakes_;
  std::uint8_t memories_ = 0;
};

}  // namespace gpuhealth::policy
