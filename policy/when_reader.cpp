// SPDX-License-Identifier: Apache-2.0
// A rule's `when`: conditions, readings, canaries, events and advisories, joined by all, any and not.
#include <algorithm>

#include "policy/keys.hpp"
#include "policy/reader.hpp"

namespace gpuhealth::policy {
namespace {

std::vector<KeyRow> rows_of(SectionId section) {
  std::vector<KeyRow> out;
  for (const KeyInfo& row : keys_of(section)) out.push_back({row.key, row.required});
  return out;
}

std::optional<ConditionType> read_condition_type(const yaml::Node& node, std::string_view key, Mistakes& mistakes) {
  static const auto words = words_of(ValueKind::Condition);
  const auto at = read_word(node, key, words, mistakes);
  return at ? std::optional(static_cast<ConditionType>(*at)) : std::nullopt;
}

std::optional<double> read_quantity(const yaml::Node& node, std::string_view key, Unit unit, Mistakes& mistakes) {
  if (node.kind != yaml::Kind::Scalar) {
    mistakes.value(node, key, "is no single value");
    return std::nullopt;
  }
  const auto value = parse_quantity(node.text, unit);
  if (value) return *value;
  mistakes.value(node, key, value.error().text);
  return std::nullopt;
}

// The hysteresis must lie on the side where the reading is well.
void check_bounds(const ReadingMatch& out, const yaml::Node& node, Mistakes& mistakes) {
  const auto low = out.above ? out.above : out.at_least;
  const auto high = out.below ? out.below : out.at_most;
  if (!low && !high) {
    mistakes.add(node.at, "a reading needs a bound", "", "known are above, below, at_least, at_most");
    return;
  }
  if ((out.above && out.at_least) || (out.below && out.at_most))
    mistakes.add(node.at, "a reading takes one bound a side");
  if (low && high && (*low > *high || (*low == *high && (out.above || out.below))))
    mistakes.add(node.at, "no value is above " + text_of(*low, out.unit) + " and below " + text_of(*high, out.unit));
  if (!out.clear) return;
  if (low && high) mistakes.add(node.at, "clear: goes with one bound, not with two");
  if (low && !high && *out.clear >= *low)
    mistakes.add(node.at, "clear: " + text_of(*out.clear, out.unit) + " must be below " + text_of(*low, out.unit));
  if (high && !low && *out.clear <= *high)
    mistakes.add(node.at, "clear: " + text_of(*out.clear, out.unit) + " must be above " + text_of(*high, out.unit));
}

}  // namespace

std::optional<ConditionMatch> WhenReader::condition(const yaml::Node& node) {
  if (node.kind == yaml::Kind::Scalar) {
    const auto type = read_condition_type(node, "condition", mistakes_);
    return type ? std::optional(ConditionMatch{*type, Severity::Info, ""}) : std::nullopt;
  }
  const auto rows = rows_of(SectionId::ConditionMatch);
  const Fields fields = read_map(node, "condition", rows, mistakes_);
  ConditionMatch out;
  const yaml::Node* type = fields.find("type");
  const auto known = type == nullptr ? std::nullopt : read_condition_type(*type, "condition", mistakes_);
  if (const auto* severity = fields.find("severity")) {
    if (const auto at = read_word(*severity, "severity", words_of(ValueKind::Severity), mistakes_))
      out.at_least = static_cast<Severity>(*at);
  }
  if (const auto* cause = fields.find("cause"))
    if (read_word(*cause, "cause", words_of(ValueKind::Cause), mistakes_)) out.cause = cause->text;
  if (!known) return std::nullopt;
  out.type = *known;
  return out;
}

std::optional<ReadingMatch> WhenReader::reading(const yaml::Node& node) {
  const auto rows = rows_of(SectionId::ReadingMatch);
  const Fields fields = read_map(node, "reading", rows, mistakes_);
  const yaml::Node* name = fields.find("name");
  static const auto words = words_of(ValueKind::Reading);
  const auto at = name == nullptr ? std::nullopt : read_word(*name, "reading", words, mistakes_);
  if (!at) return std::nullopt;
  const ReadingInfo& info = all_readings()[*at];
  ReadingMatch out;
  out.id = info.id;
  out.unit = info.unit;
  bool sound = true;
  for (const auto& [key, field] : {std::pair("above", &ReadingMatch::above),
                                   {"below", &ReadingMatch::below},
                                   {"at_least", &ReadingMatch::at_least},
                                   {"at_most", &ReadingMatch::at_most},
                                   {"clear", &ReadingMatch::clear}}) {
    const yaml::Node* value = fields.find(key);
    if (value == nullptr) continue;
    out.*field = read_quantity(*value, key, info.unit, mistakes_);
    sound = sound && (out.*field).has_value();
  }
  if (!sound) return std::nullopt;
  check_bounds(out, node, mistakes_);
  if (out.clear) {
    if (memories_ == 16) mistakes_.add(node.at, "a rule may have 16 readings with clear");
    out.memory = memories_++;
  }
  return out;
}

std::optional<CanaryMatch> WhenReader::canary(const yaml::Node& node) {
  const auto rows = rows_of(SectionId::CanaryMatch);
  const Fields fields = read_map(node, "canary", rows, mistakes_);
  CanaryMatch out;
  bool sound = true;
  if (const auto* name = fields.find("name")) {
    sound = read_word(*name, "canary", words_of(ValueKind::Canary), mistakes_).has_value();
    if (name->text != "any") out.name = name->text;
  }
  if (const auto* finding = fields.find("finding")) {
    const auto words = words_of(ValueKind::Finding);
    const auto at = read_word(*finding, "finding", words, mistakes_);
    sound = sound && at;
    if (at && *at + 1 < words.size()) out.finding = static_cast<canary::stats::FindingKind>(*at);
  }
  if (const auto* times = fields.find("slower_than")) {
    const auto value = times->kind == yaml::Kind::Scalar
                           ? parse_times(times->text)
                           : fail(ErrorCode::InvalidInput, "is no number of times; write 1.5x");
    if (!value) mistakes_.value(*times, "slower_than", value.error().text);
    if (value) out.slower_than = *value;
  }
  return sound && fields.find("name") != nullptr ? std::optional(out) : std::nullopt;
}

std::optional<EventMatch> WhenReader::event(const yaml::Node& node) {
  const auto rows = rows_of(SectionId::EventMatch);
  const Fields fields = read_map(node, "event", rows, mistakes_);
  EventMatch out;
  static const auto words = words_of(ValueKind::EventType);
  const yaml::Node* type = fields.find("type");
  const auto at = type == nullptr ? std::nullopt : read_word(*type, "event", words, mistakes_);
  if (at) out.type = static_cast<int>(*at);
  if (const auto* condition = fields.find("condition")) {
    out.condition = read_condition_type(*condition, "condition", mistakes_);
    if (at && !type->text.starts_with("condition."))
      mistakes_.add(condition->at,
                    "condition: goes with condition.confirmed, condition.cleared and condition.acknowledged only",
                    type->text);
  }
  if (const auto* count = fields.find("count"))
    if (const auto value = read_whole(*count, "count", 1, 1000, mistakes_))
      out.count = static_cast<std::uint32_t>(*value);
  if (const auto* within = fields.find("within")) {
    if (const auto value = read_duration(*within, "within", mistakes_)) {
      out.within = *value;
      if (value->count() == 0) mistakes_.value(*within, "within", "must be more than 0s");
    }
  }
  if (const auto* rule = fields.find("after"))
    if (auto name = read_name(*rule, "after", mistakes_)) out.after = std::move(*name), after.push_back(rule);
  return at && fields.find("within") != nullptr ? std::optional(out) : std::nullopt;
}

std::optional<Group> WhenReader::group(Group::Kind kind, std::string_view key, const yaml::Node& node, int depth) {
  Group out{kind, {}};
  if (kind == Group::Kind::Not) {
    if (auto part = read(node, false, depth + 1)) out.parts.push_back(std::move(*part));
  } else {
    for (const yaml::Node* item : read_list(node, key, 64, mistakes_))
      if (auto part = read(*item, false, depth + 1)) out.parts.push_back(std::move(*part));
  }
  return out.parts.empty() ? std::nullopt : std::optional(std::move(out));
}

std::optional<When> WhenReader::read(const yaml::Node& node, bool revert, int depth) {
  const std::string_view what = revert ? "revert_when" : "when";
  if (depth > kMostNesting) {
    mistakes_.add(node.at, "all, any and not are nested more than " + std::to_string(kMostNesting) + " deep");
    return std::nullopt;
  }
  const auto rows = rows_of(revert ? SectionId::RevertWhen : SectionId::When);
  const Fields fields = read_map(node, what, rows, mistakes_);
  std::optional<When> out;
  std::size_t parts = 0;
  for (const auto& [key, value] : fields.values) {
    if (key == "for") {
      hold = read_duration(*value, "for", mistakes_);
      continue;
    }
    ++parts;
    const auto take = [&](auto part) {
      if (part) out = When{std::move(*part)};
    };
    if (key == "condition") take(condition(*value));
    if (key == "reading") take(reading(*value));
    if (key == "canary") take(canary(*value));
    if (key == "event") take(event(*value));
    if (key == "all") take(group(Group::Kind::All, key, *value, depth));
    if (key == "any") take(group(Group::Kind::Any, key, *value, depth));
    if (key == "not") take(group(Group::Kind::Not, key, *value, depth));
    if (key == "advisory") {
      if (value->kind == yaml::Kind::Scalar && value->text == "any") {
        out = When{AdvisoryMatch{}};
      } else if (auto name = read_name(*value, "advisory", mistakes_)) {
        out = When{AdvisoryMatch{std::move(*name)}};
      }
    }
  }
  if (node.kind == yaml::Kind::Map && parts == 0 && node.keys.empty())
    mistakes_.add(node.at, std::string(what) + " says nothing", "",
                  "known are condition, reading, canary, event, advisory, all, any, not");
  if (parts > 1)
    mistakes_.add(node.at, std::string(what) + " holds " + std::to_string(parts) + " things", "",
                  "join them with \"all:\" or \"any:\" and a list");
  return out;
}

}  // namespace gpuhealth::policy
