// SPDX-License-Identifier: Apache-2.0
// The list behind `do:`: names and parameters are those of core/action.def; ranges and words stand in the table below.
#include <algorithm>
#include <array>
#include <set>

#include "core/nearest.hpp"
#include "policy/reader.hpp"

namespace gpuhealth::policy {
namespace {

constexpr std::size_t kMostActions = 16;  // of a rule

// What core/action.def says in words: the range of a number and its unit, the words of a word.
struct ParamRule {
  ActionKind action;
  std::string_view param;
  double low = 0;
  double high = 0;
  std::string_view unit;  // may stand behind the number
  std::array<std::string_view, 4> words = {};
  bool whole = false;
};
constexpr auto kRules = std::to_array<ParamRule>({
    {ActionKind::Notify, "via", 0, 0, "", {"journal", "desktop", "mail", "webhook"}},
    {ActionKind::RunCanary, "tier", 0, 2, "", {}, true},
    {ActionKind::PowerCap, "watts", 1, 5000, "W"},
    {ActionKind::PowerCap, "percent", 10, 100, "%"},
    {ActionKind::PcieSpeed, "generation", 1, 6, "", {}, true},
    {ActionKind::PcieSpeed, "floor", 1, 6, "", {}, true},
    {ActionKind::PerformanceLevel, "level", 0, 0, "", {"auto", "low", "high"}},
    {ActionKind::ClockCap, "mhz", 100, 10000, "MHz", {}, true},
});

constexpr auto kUrgencies = std::to_array<std::string_view>({"low", "normal", "critical"});
constexpr auto kPlaceholders =
    std::to_array<std::string_view>({"device", "pci", "name", "rule", "policy", "condition", "detail", "evidence",
                                     "advice", "cause", "host", "reason"});

const ParamRule* rule_of(const ActionParam& param) {
  const auto* const at = std::ranges::find_if(
      kRules, [&](const ParamRule& r) { return r.action == param.action && r.param == param.name; });
  return at == kRules.end() ? nullptr : at;
}

std::vector<std::string> words_of(const ParamRule& rule) {
  std::vector<std::string> out;
  for (const auto word : rule.words)
    if (!word.empty()) out.emplace_back(word);
  return out;
}

std::string without_zeros(double value) {
  std::string out = std::to_string(value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

std::optional<std::string> read_number(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes) {
  const ParamRule* rule = rule_of(param);
  std::string_view text = node.kind == yaml::Kind::Scalar ? std::string_view(node.text) : std::string_view();
  if (rule != nullptr && !rule->unit.empty() && text.ends_with(rule->unit)) {
    text.remove_suffix(rule->unit.size());
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  const auto value = parse_number(text);
  if (!value) {
    const bool unit = rule != nullptr && !rule->unit.empty();
    mistakes.value(node, param.name, unit ? "is no number of " + std::string(rule->unit) : "is no number");
    return std::nullopt;
  }
  if (rule != nullptr && (*value < rule->low || *value > rule->high)) {
    mistakes.value(node, param.name, "must be " + without_zeros(rule->low) + " to " + without_zeros(rule->high));
    return std::nullopt;
  }
  if (rule != nullptr && rule->whole && *value != static_cast<double>(static_cast<long>(*value))) {
    mistakes.value(node, param.name, "is no whole number");
    return std::nullopt;
  }
  return without_zeros(*value);
}

// Braces name facts; anything else in them is a slip that would reach people.
std::optional<std::string> read_template(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes) {
  auto text = read_text(node, param.name, mistakes);
  if (!text) return std::nullopt;
  static const std::vector<std::string> known(kPlaceholders.begin(), kPlaceholders.end());
  for (std::size_t at = text->find('{'); at != std::string::npos; at = text->find('{', at + 1)) {
    const auto end = text->find('}', at);
    const std::string name = text->substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (end != std::string::npos && std::ranges::find(known, name) != known.end()) continue;
    const std::string near = nearest(name, known);
    mistakes.add(
        node.at,
        std::string(param.name) + ": nothing is known as " +
            yaml::shown("{" + name + (end == std::string::npos ? "" : "}")),
        name,
        near.empty()
            ? "known are {device}, {pci}, {name}, {rule}, {policy}, {condition}, {detail}, {evidence}, {advice}, "
              "{cause}, {host}, {reason}"
            : "did you mean {" + near + "}?");
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> read_words(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes) {
  const ParamRule* rule = rule_of(param);
  const auto known = rule == nullptr ? std::vector<std::string>() : words_of(*rule);
  std::vector<const yaml::Node*> items;
  if (node.kind == yaml::Kind::Scalar) {
    items.push_back(&node);
  } else {
    items = read_list(node, param.name, 16, mistakes);
  }
  std::string out;
  std::set<std::string> seen;
  for (const yaml::Node* item : items) {
    if (!read_word(*item, param.name, known, mistakes)) return std::nullopt;
    if (!seen.insert(item->text).second) {
      mistakes.value(*item, param.name, "stands twice");
      return std::nullopt;
    }
    out += (out.empty() ? "" : ",") + item->text;
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

std::optional<std::string> read_one_word(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes) {
  if (const ParamRule* rule = rule_of(param)) {
    const auto known = words_of(*rule);
    return read_word(node, param.name, known, mistakes) ? std::optional(node.text) : std::nullopt;
  }
  const auto fine = [](unsigned char c) {
    return (std::isalnum(c) != 0 && c < 0x80) ||
           std::string_view("._-+~:").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (node.kind == yaml::Kind::Scalar && !node.text.empty() && node.text.size() <= 128 && node.text.front() != '.' &&
      node.text.front() != '-' && std::ranges::all_of(node.text, fine))
    return node.text;
  mistakes.value(node, param.name, "is no word of letters, digits, . _ - + ~ and :");
  return std::nullopt;
}

template <class Parsed>
std::optional<std::string> as_written(const ActionParam& param, const yaml::Node& node, const Parsed& parsed,
                                      Mistakes& mistakes) {
  if (parsed) return node.text;
  mistakes.value(node, param.name, parsed.error().text);
  return std::nullopt;
}

// What the table cannot say of a parameter alone.
void check_together(const PlannedAction& action, const yaml::Node& name, const std::set<std::string>& stated,
                    Mistakes& mistakes) {
  const auto value = [&](const char* key) {
    const auto it = action.params.find(key);
    return it == action.params.end() ? std::string() : it->second;
  };
  if (action.kind == ActionKind::PowerCap && stated.contains("watts") == stated.contains("percent"))
    mistakes.add(name.at, "power-cap takes one of watts and percent", name.text);
  if (action.kind == ActionKind::PcieSpeed && !value("generation").empty()) {
    const auto floor = value("floor").empty() ? std::string("3") : value("floor");
    if (parse_number(value("generation")).value_or(6) < parse_number(floor).value_or(1))
      mistakes.add(name.at, "pcie-speed: generation " + value("generation") + " is below the floor, " + floor,
                   value("generation"), "state a lower floor if you mean it");
  }
  if (action.kind != ActionKind::Notify) return;
  const auto via = value("via"), to = value("to");
  const bool mail = via.find("mail") != std::string::npos, hook = via.find("webhook") != std::string::npos;
  if ((mail || hook) && to.empty()) mistakes.add(name.at, "notify by mail or webhook lacks \"to\"", name.text);
  if (mail && hook) mistakes.add(name.at, "notify has one \"to\": write mail and webhook as two actions", name.text);
  if (hook && !mail && !to.empty() && !to.starts_with("https://"))
    mistakes.add(name.at, "notify: a webhook's \"to\" must begin with https://", to);
}

}  // namespace

std::optional<std::string> read_param(const ActionParam& param, const yaml::Node& node, Mistakes& mistakes) {
  if (node.kind != yaml::Kind::Scalar && param.kind != ParamKind::Words) {
    mistakes.value(node, param.name, "is no single value");
    return std::nullopt;
  }
  switch (param.kind) {
    case ParamKind::Flag: {
      const auto flag = read_flag(node, param.name, mistakes);
      return flag ? std::optional<std::string>(*flag ? "true" : "false") : std::nullopt;
    }
    case ParamKind::Number:
      return read_number(param, node, mistakes);
    case ParamKind::Word:
      return read_one_word(param, node, mistakes);
    case ParamKind::Words:
      return read_words(param, node, mistakes);
    case ParamKind::Text:
      return read_template(param, node, mistakes);
    case ParamKind::TimeSpan:
      return as_written(param, node, parse_duration(node.text), mistakes);
    case ParamKind::Bytes:
      return as_written(param, node, parse_bytes(node.text), mistakes);
    case ParamKind::Window:
      if (parse_window(node.text)) return node.text;
      mistakes.value(node, param.name, "is no window; write 02:00-05:00 or Mon-Fri 02:00-05:00");
      return std::nullopt;
    case ParamKind::Urgency: {
      const std::vector<std::string> known(kUrgencies.begin(), kUrgencies.end());
      return read_word(node, param.name, known, mistakes) ? std::optional(node.text) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<ActionNodes> action_nodes(const yaml::Node& node, Mistakes& mistakes) {
  if (node.kind == yaml::Kind::Scalar) return ActionNodes{&node, nullptr};
  if (node.kind == yaml::Kind::Map && node.keys.size() == 1 && node.items.size() == 1 &&
      node.keys.front().kind == yaml::Kind::Scalar)
    return ActionNodes{&node.keys.front(), node.items.front().kind == yaml::Kind::Null ? nullptr : &node.items.front()};
  if (node.kind == yaml::Kind::Map && node.keys.size() > 1 && node.keys.front().kind == yaml::Kind::Scalar) {
    mistakes.add(node.at, "an action has one name; " + std::to_string(node.keys.size()) + " keys stand there",
                 node.keys.front().text,
                 "indent the parameters below the name, or put each action behind its own \"-\"");
  } else {
    mistakes.add(node.at, "an action must be a name, or a name with parameters", node.text,
                 "such as \"power-cap: {watts: 250}\"");
  }
  return std::nullopt;
}

std::optional<PlannedAction> read_action(const yaml::Node& node, Mistakes& mistakes) {
  const auto nodes = action_nodes(node, mistakes);
  if (!nodes) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& row : all_actions()) names.emplace_back(row.name);
  const auto kind = action_kind_from(nodes->name->text);
  if (!kind) {
    mistakes.unknown(*nodes->name, "do", names);
    return std::nullopt;
  }
  PlannedAction out{*kind, {}};
  const auto params = params_of(*kind);
  std::vector<KeyRow> keys;
  keys.reserve(params.size());
  for (const auto& param : params) keys.push_back({param.name, param.required});
  std::set<std::string> stated;
  const yaml::Node none{yaml::Kind::Map, nodes->name->at, {}, false, {}, {}};
  if (nodes->params != nullptr && keys.empty()) {
    mistakes.add(nodes->params->at, std::string(to_string(*kind)) + " takes no parameters", nodes->params->text);
  } else if (!keys.empty()) {
    const Fields fields = read_map(nodes->params == nullptr ? none : *nodes->params, to_string(*kind), keys, mistakes);
    for (const auto& param : params) {
      const yaml::Node* value = fields.find(param.name);
      if (value == nullptr) continue;
      stated.emplace(param.name);
      if (auto text = read_param(param, *value, mistakes)) out.params[std::string(param.name)] = std::move(*text);
    }
  }
  check_together(out, *nodes->name, stated, mistakes);
  return out;
}

std::vector<PlannedAction> read_actions(const yaml::Node& node, Mistakes& mistakes) {
  std::vector<PlannedAction> out;
  for (const yaml::Node* item : read_list(node, "do", kMostActions, mistakes)) {
    auto action = read_action(*item, mistakes);
    if (!action) continue;
    const bool again = std::ranges::any_of(out, [&](const PlannedAction& a) {
      return a.kind == action->kind && (!resource_of(a.kind).empty() || a.params == action->params);
    });
    if (again)
      mistakes.add(item->at, "do: " + std::string(to_string(action->kind)) + " stands twice", to_string(action->kind));
    out.push_back(std::move(*action));
  }
  return out;
}

}  // namespace gpuhealth::policy
