// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "core/nearest.hpp"
#include "policy/keys.hpp"
#include "policy/reader.hpp"

namespace gpuhealth::policy {
namespace {

constexpr std::size_t kMostWindows = 32;

std::vector<KeyRow> rows_of(SectionId section) {
  std::vector<KeyRow> out;
  for (const KeyInfo& row : keys_of(section)) out.push_back({row.key, row.required});
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view file) { policy_.file = file; }

  ParsedPolicy read(const yaml::Node& root) {
    if (root.kind == yaml::Kind::Null) {
      mistakes_.add({}, "is empty; a policy begins with \"apiVersion: gpuhealth/v1\"");
      return {std::nullopt, mistakes_.take()};
    }
    const Fields fields = section(root, SectionId::File);
    fixed(fields, "apiVersion", ValueKind::ApiVersion);
    fixed(fields, "kind", ValueKind::KindWord);
    if (const auto* node = fields.find("metadata")) metadata(*node);
    if (const auto* node = fields.find("targets")) targets(*node);
    if (const auto* node = fields.find("mode")) policy_.mode = mode(*node).value_or(Mode::Observe);
    if (const auto* node = fields.find("limits")) limits(*node);
    if (const auto* node = fields.find("rules")) rules(*node);
    check_limits();
    if (!mistakes_.empty()) return {std::nullopt, mistakes_.take()};
    return {std::move(policy_), {}};
  }

 private:
  Fields section(const yaml::Node& node, SectionId id) {
    const auto rows = rows_of(id);
    return read_map(node, name_of(id), rows, mistakes_);
  }

  void fixed(const Fields& fields, std::string_view key, ValueKind kind) {
    const auto* node = fields.find(key);
    if (node == nullptr) return;
    const auto words = words_of(kind);
    if (node->kind != yaml::Kind::Scalar || node->text != words.front())
      mistakes_.value(*node, key, "is not known", "this program reads " + words.front());
  }

  std::optional<Mode> mode(const yaml::Node& node) {
    const auto at = read_word(node, "mode", words_of(ValueKind::Mode), mistakes_);
    return at ? std::optional(static_cast<Mode>(*at)) : std::nullopt;
  }

  void metadata(const yaml::Node& node) {
    const Fields fields = section(node, SectionId::Metadata);
    if (const auto* name = fields.find("name")) policy_.name = read_name(*name, "name", mistakes_).value_or("");
    if (const auto* serial = fields.find("serial"))
      policy_.serial = read_whole(*serial, "serial", 1, 999'999'999'999, mistakes_).value_or(0);
    if (const auto* expires = fields.find("expires")) {
      policy_.expires = expires->kind == yaml::Kind::Scalar ? parse_last_day(expires->text) : std::nullopt;
      if (!policy_.expires) mistakes_.value(*expires, "expires", "is no day; write 2027-03-31");
    }
    if (const auto* text = fields.find("description"))
      policy_.description = read_text(*text, "description", mistakes_).value_or("");
  }

  void targets(const yaml::Node& node) {
    const Fields fields = section(node, SectionId::Targets);
    Targets& t = policy_.targets;
    for (const auto& [key, list] : {std::pair("host", &t.host),
                                    {"gfx", &t.gfx},
                                    {"sku", &t.sku},
                                    {"distribution", &t.distribution},
                                    {"kernel", &t.kernel}})
      if (const auto* value = fields.find(key)) *list = read_texts(*value, key, mistakes_);
    if (const auto* vendor = fields.find("vendor")) vendors(*vendor);
    if (const auto* labels = fields.find("labels")) read_labels(*labels);
    if (const auto* vram = fields.find("vram")) {
      const Fields range = section(*vram, SectionId::Range);
      if (range.values.empty()) mistakes_.add(vram->at, "vram needs a bound", "", "known are at_least, at_most");
      t.vram_at_least = bytes(range, "at_least");
      t.vram_at_most = bytes(range, "at_most");
      if (t.vram_at_least && t.vram_at_most && *t.vram_at_least > *t.vram_at_most)
        mistakes_.add(vram->at, "vram: at_least is more than at_most");
    }
  }

  void vendors(const yaml::Node& node) {
    const auto words = words_of(ValueKind::Vendors);
    std::vector<const yaml::Node*> items;
    if (node.kind == yaml::Kind::Scalar) {
      items.push_back(&node);
    } else {
      items = read_list(node, "vendor", 8, mistakes_);
    }
    for (const auto* item : items)
      if (read_word(*item, "vendor", words, mistakes_)) policy_.targets.vendor.push_back(item->text);
  }

  void read_labels(const yaml::Node& node) {
    if (node.kind != yaml::Kind::Map || node.keys.empty()) {
      mistakes_.add(node.at, "labels must hold keys and values", node.text, "such as \"role: inference\"");
      return;
    }
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const auto key = read_name(node.keys[i], "labels", mistakes_);
      const auto value = read_text(node.items[i], "labels", mistakes_);
      if (key && value && !policy_.targets.labels.emplace(*key, *value).second)
        mistakes_.add(node.keys[i].at, yaml::shown(*key) + " stands twice", *key);
    }
  }

  std::optional<double> bytes(const Fields& fields, std::string_view key) {
    const auto* node = fields.find(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->kind == yaml::Kind::Scalar ? parse_bytes(node->text)
                                                        : fail(ErrorCode::InvalidInput, "is no number; write 16GiB");
    if (value && *value >= 0) return *value;
    mistakes_.value(*node, key, value ? "must not be negative" : value.error().text);
    return std::nullopt;
  }

  void limits(const yaml::Node& node) {
    const Fields fields = section(node, SectionId::Limits);
    if (const auto* rate_node = fields.find("actions")) policy_.actions = rate(*rate_node, "actions");
    if (const auto* rate_node = fields.find("breaker")) policy_.breaker = rate(*rate_node, "breaker");
    limits_at_ = node.at;
  }

  // A rule that wants more at once than ever may be would open the breaker each time, and do nothing.
  void check_limits() {
    for (const Rule& rule : policy_.rules) {
      const auto changing =
          std::ranges::count_if(rule.actions, [](const PlannedAction& a) { return changes_something(a.kind); });
      for (const auto& [key, limit] : {std::pair("breaker", &policy_.breaker), {"actions", &policy_.actions}})
        if (*limit && changing > (*limit)->count)
          mistakes_.add(limits_at_, std::string(key) + " allows " + std::to_string((*limit)->count) + ", and rule " +
                                        rule.name + " has " + std::to_string(changing) +
                                        " actions that change something: it would never act");
    }
  }

  std::optional<Rate> rate(const yaml::Node& node, std::string_view what) {
    const auto rows = rows_of(SectionId::Rate);
    const Fields fields = read_map(node, what, rows, mistakes_);
    Rate out;
    if (const auto* count = fields.find("count"))
      out.count = static_cast<std::uint32_t>(read_whole(*count, "count", 1, 1000, mistakes_).value_or(0));
    if (const auto* within = fields.find("within")) {
      if (const auto time = read_duration(*within, "within", mistakes_)) {
        out.within = *time;
        if (time->count() == 0) mistakes_.value(*within, "within", "must be more than 0s");
      }
    }
    return out.count > 0 && out.within.count() > 0 ? std::optional(out) : std::nullopt;
  }

  void rules(const yaml::Node& node) {
    std::map<std::string, int> lines;
    std::vector<std::pair<const yaml::Node*, std::string>> after;
    for (const yaml::Node* item : read_list(node, "rules", kMostRules, mistakes_)) {
      Rule out = rule(*item, after);
      if (!out.name.empty()) {
        if (const auto [it, fresh] = lines.emplace(out.name, item->at.line); !fresh)
          mistakes_.add(item->at, "there are two rules " + yaml::shown(out.name), out.name,
                        "the first is at line " + std::to_string(it->second));
      }
      policy_.rules.push_back(std::move(out));
    }
    std::vector<std::string> names;
    names.reserve(lines.size());
    for (const auto& [name, line] : lines) names.push_back(name);
    for (const auto& [word, owner] : after) {
      if (!lines.contains(word->text)) {
        mistakes_.unknown(*word, "after", names);
      } else if (word->text == owner) {
        mistakes_.value(*word, "after", "is the rule that it stands in");
      }
    }
  }

  Rule rule(const yaml::Node& node, std::vector<std::pair<const yaml::Node*, std::string>>& after) {
    const Fields fields = section(node, SectionId::Rule);
    Rule out;
    out.line = node.at.line;
    out.cooldown = parse_duration("10m").value();
    if (const auto* name = fields.find("name")) out.name = read_name(*name, "name", mistakes_).value_or("");
    if (const auto* text = fields.find("description"))
      out.description = read_text(*text, "description", mistakes_).value_or("");
    if (const auto* word = fields.find("mode")) out.mode = mode(*word);
    for (const auto& [key, field] :
         {std::pair("for", &Rule::hold), {"clear_for", &Rule::clear_for}, {"cooldown", &Rule::cooldown}})
      if (const auto* time = fields.find(key)) out.*field = read_duration(*time, key, mistakes_).value_or(Duration{});
    WhenReader reader(mistakes_);
    if (const auto* when = fields.find("when"))
      if (auto read = reader.read(*when, false)) out.when = std::move(*read);
    if (const auto* when = fields.find("revert_when")) {
      out.revert_when = reader.read(*when, true);
      if (out.revert_when) out.revert_hold = reader.hold.value_or(Duration{});
    }
    for (const auto* word : reader.after) after.emplace_back(word, out.name);
    if (const auto* budget = fields.find("budget")) out.budget = rate(*budget, "budget");
    if (const auto* unless = fields.find("unless")) read_unless(*unless, out.unless);
    if (const auto* actions = fields.find("do")) out.actions = read_actions(*actions, mistakes_);
    check_rule(out, fields);
    return out;
  }

  void read_unless(const yaml::Node& node, Unless& out) {
    const Fields fields = section(node, SectionId::Unless);
    if (node.kind == yaml::Kind::Map && node.keys.empty())
      mistakes_.add(node.at, "unless says nothing", "", "known are busy, battery, window");
    if (const auto* flag = fields.find("busy")) out.busy = read_flag(*flag, "busy", mistakes_).value_or(false);
    if (const auto* flag = fields.find("battery")) out.battery = read_flag(*flag, "battery", mistakes_).value_or(false);
    const auto* window = fields.find("window");
    if (window == nullptr) return;
    std::vector<const yaml::Node*> items;
    if (window->kind == yaml::Kind::Scalar) {
      items.push_back(window);
    } else {
      items = read_list(*window, "window", kMostWindows, mistakes_);
    }
    for (const auto* item : items) {
      const auto parsed = item->kind == yaml::Kind::Scalar ? parse_window(item->text) : std::nullopt;
      if (parsed) out.windows.push_back(*parsed);
      if (!parsed) mistakes_.value(*item, "window", "is no window; write 22:00-06:00 or Mon-Fri 08:00-18:00");
    }
  }

  // What only several keys together can get wrong.
  void check_rule(const Rule& rule, const Fields& fields) {
    const std::string name = rule.name.empty() ? "this rule" : "rule " + rule.name;
    const auto has = [&](ActionKind kind) {
      return std::ranges::any_of(rule.actions, [&](const PlannedAction& a) { return a.kind == kind; });
    };
    if (has(ActionKind::Reboot)) {
      if (fields.find("budget") == nullptr) mistakes_.add(fields.at, name + " reboots and lacks its key \"budget\"");
      for (const auto& action : rule.actions)
        if (action.kind == ActionKind::Reboot && !action.params.contains("window"))
          mistakes_.add(fields.at, name + " reboots and lacks the parameter \"window\"");
      if (rule.actions.back().kind != ActionKind::Reboot)
        mistakes_.add(fields.at, name + ": what stands behind reboot is never done");
    }
    const bool reversible = std::ranges::any_of(
        rule.actions, [](const PlannedAction& a) { return info(a.kind).risk == ActionRisk::Reversible; });
    if (const auto* revert = fields.find("revert_when"); revert != nullptr && !rule.actions.empty() && !reversible)
      mistakes_.add(revert->at, name + " has revert_when, and does nothing that can be undone");
  }

  Policy policy_;
  Mistakes mistakes_;
  yaml::Place limits_at_;
};

}  // namespace

std::string_view to_string(Mode mode) {
  constexpr std::array<std::string_view, 3> names = {"observe", "shadow", "enforce"};
  return names.at(static_cast<std::size_t>(mode));
}

std::optional<Mode> mode_from(std::string_view name) {
  for (const Mode mode : {Mode::Observe, Mode::Shadow, Mode::Enforce})
    if (to_string(mode) == name) return mode;
  return std::nullopt;
}

ParsedPolicy parse_policy(std::string_view file, std::string_view text) {
  auto parsed = yaml::parse(text);
  if (!parsed.root) return {std::nullopt, std::move(parsed.mistakes)};
  return Parser(file).read(*parsed.root);
}

bool concerns_machine(ActionKind kind) {
  switch (kind) {
    case ActionKind::Drain:
    case ActionKind::SlurmDrain:
    case ActionKind::KernelPin:
    case ActionKind::KernelTrial:
    case ActionKind::KernelHold:
    case ActionKind::Reboot:
      return true;
    default:
      return false;
  }
}

std::string_view resource_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::KernelPin:
    case ActionKind::KernelTrial:
    case ActionKind::KernelHold:
      return "kernel";
    case ActionKind::PerformanceLevel:
    case ActionKind::PowerProfile:  // writes the level too
      return "performance";
    case ActionKind::GpuReset:
    case ActionKind::PciRescan:
      return "reset";
    default:
      return changes_something(kind) && kind != ActionKind::RunHook ? to_string(kind) : std::string_view();
  }
}

bool ends_at_reboot(ActionKind kind) {
  switch (kind) {
    case ActionKind::PowerCap:
    case ActionKind::PcieSpeed:
    case ActionKind::PerformanceLevel:
    case ActionKind::PowerProfile:
    case ActionKind::ClockCap:
    case ActionKind::Drain:
      return true;
    default:
      return false;
  }
}

bool changes_something(ActionKind kind) {
  return info(kind).risk != ActionRisk::None;
}

}  // namespace gpuhealth::policy
