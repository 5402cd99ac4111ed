// SPDX-License-Identifier: Apache-2.0
#include "policy/keys.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "canary/measurement.hpp"
#include "canary/stats/judge.hpp"
#include "core/condition.hpp"
#include "core/reading.hpp"
#include "health/cause.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::policy {
namespace {

constexpr auto kKeys = std::to_array<KeyInfo>({
#define KEY(section, key, value, child, required, standard, meaning) \
  {SectionId::section, key, ValueKind::value, SectionId::child, required, standard, meaning},
#include "policy/keys.def"
#undef KEY
});

constexpr auto kHouseEvents = std::to_array<EventTypeInfo>({
#define EVENT(name, meaning) {name, meaning},
#include "policy/events.def"
#undef EVENT
});

constexpr auto kSections = std::to_array<std::string_view>({
    "nothing",
    "a policy",
    "metadata",
    "targets",
    "vram",
    "limits",
    "a rate",
    "a rule",
    "when",
    "revert_when",
    "a condition",
    "a reading",
    "a canary",
    "an event",
    "unless",
});
static_assert(kSections.size() == static_cast<std::size_t>(SectionId::Count));

std::vector<EventTypeInfo> event_types() {
  std::vector<EventTypeInfo> out(kHouseEvents.begin(), kHouseEvents.end());
  for (const auto& row : klog::all_types()) out.push_back({row.name, row.meaning});
  std::ranges::sort(out, {}, &EventTypeInfo::name);
  return out;
}

template <class Rows, class Name>
std::vector<std::string> names(const Rows& rows, Name name) {
  std::vector<std::string> out;
  out.reserve(std::size(rows));
  for (const auto& row : rows) out.emplace_back(name(row));
  return out;
}

std::vector<std::string> canary_words() {
  std::set<std::string> seen;
  for (const auto& row : canary::all_canaries()) seen.emplace(row.canary);
  std::vector<std::string> out(seen.begin(), seen.end());
  out.emplace_back("any");
  return out;
}

std::vector<std::string> finding_words() {
  using canary::stats::FindingKind;
  std::vector<std::string> out;
  for (int i = 0; i <= static_cast<int>(FindingKind::FellBack); ++i)
    out.emplace_back(to_string(static_cast<FindingKind>(i)));
  out.emplace_back("any");
  return out;
}

}  // namespace

std::span<const KeyInfo> all_keys() {
  return kKeys;
}

std::span<const KeyInfo> keys_of(SectionId section) {
  const auto found = std::ranges::equal_range(kKeys, section, {}, &KeyInfo::section);
  return {found.begin(), found.end()};
}

std::string_view name_of(SectionId section) {
  return kSections.at(static_cast<std::size_t>(section));
}

std::string_view form_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::Section:
      return "keys below it";
    case ValueKind::SectionList:
    case ValueKind::Actions:
      return "a list, each entry behind a \"-\"";
    case ValueKind::ConditionOr:
    case ValueKind::Condition:
      return "the name of a condition";
    case ValueKind::ApiVersion:
      return "gpuhealth/v1";
    case ValueKind::KindWord:
      return "Policy";
    case ValueKind::Mode:
      return "observe, shadow or enforce";
    case ValueKind::Name:
    case ValueKind::RuleName:
      return "a name of letters, digits, . _ and -, at most 64";
    case ValueKind::Text:
      return "a text";
    case ValueKind::Serial:
      return "a whole number from 1 on";
    case ValueKind::Count:
      return "a whole number from 1 to 1000";
    case ValueKind::Day:
      return "a day such as 2027-03-31";
    case ValueKind::Duration:
      return "a time such as 90s, 5m, 24h or 7d";
    case ValueKind::Bytes:
      return "a size such as 512MiB or 16GiB";
    case ValueKind::Quantity:
      return "a number with the reading's unit";
    case ValueKind::Times:
      return "a number of times such as 1.5x";
    case ValueKind::Flag:
      return "true or false";
    case ValueKind::Globs:
      return "a word or a list of words; * and ? match as in a shell";
    case ValueKind::Vendors:
      return "amd, intel or nvidia, or a list of them";
    case ValueKind::Labels:
      return "keys and values, such as \"role: inference\"";
    case ValueKind::Windows:
      return "a window such as 22:00-06:00 or Mon-Fri 08:00-18:00, or a list of them";
    case ValueKind::Severity:
      return "info, warning or critical";
    case ValueKind::Cause:
      return "the name of a cause";
    case ValueKind::Reading:
      return "the name of a reading";
    case ValueKind::Canary:
      return "the name of a canary";
    case ValueKind::Finding:
      return "a finding of canaries, such as stall";
    case ValueKind::EventType:
      return "the type of an event";
    case ValueKind::Advisory:
      return "the id of an advisory, or any";
  }
  return "";
}

std::span<const EventTypeInfo> all_event_types() {
  static const std::vector<EventTypeInfo> types = event_types();
  return types;
}

int event_type_index(std::string_view name) {
  const auto types = all_event_types();
  const auto at = std::ranges::lower_bound(types, name, {}, &EventTypeInfo::name);
  return at != types.end() && at->name == name ? static_cast<int>(at - types.begin()) : -1;
}

std::vector<std::string> words_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::Mode:
      return {"observe", "shadow", "enforce"};
    case ValueKind::Vendors:
      return {"amd", "intel", "nvidia"};
    case ValueKind::Severity:
      return {"info", "warning", "critical"};
    case ValueKind::ApiVersion:
      return {"gpuhealth/v1"};
    case ValueKind::KindWord:
      return {"Policy"};
    case ValueKind::Condition:
    case ValueKind::ConditionOr:
      return names(all_conditions(), [](const ConditionInfo& row) { return row.name; });
    case ValueKind::Cause:
      return names(health::all_causes(), [](const health::CauseInfo& row) { return row.name; });
    case ValueKind::Reading:
      return names(all_readings(), [](const ReadingInfo& row) { return row.name; });
    case ValueKind::Canary:
      return canary_words();
    case ValueKind::Finding:
      return finding_words();
    case ValueKind::EventType:
      return names(all_event_types(), [](const EventTypeInfo& row) { return row.name; });
    default:
      return {};
  }
}

}  // namespace gpuhealth::policy
