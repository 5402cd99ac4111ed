// SPDX-License-Identifier: Apache-2.0
// The keys of a policy file as a table: for the parser, the JSON Schema and the reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::policy {

enum class SectionId : std::uint8_t {
  None,
  File,
  Metadata,
  Targets,
  Range,
  Limits,
  Rate,
  Rule,
  When,
  RevertWhen,
  ConditionMatch,
  ReadingMatch,
  CanaryMatch,
  EventMatch,
  Unless,
  Count,
};

enum class ValueKind : std::uint8_t {
  Section,
  SectionList,
  ConditionOr,  // a name, or a section
  Actions,
  ApiVersion,
  KindWord,
  Mode,
  Name,
  RuleName,
  Text,
  Serial,
  Count,
  Day,
  Duration,
  Bytes,
  Quantity,
  Times,
  Flag,
  Globs,
  Vendors,
  Labels,
  Windows,
  Condition,
  Severity,
  Cause,
  Reading,
  Canary,
  Finding,
  EventType,
  Advisory,
};

struct KeyInfo {
  SectionId section;
  std::string_view key;
  ValueKind value;
  SectionId child;
  bool required;
  std::string_view standard;
  std::string_view meaning;
};
std::span<const KeyInfo> all_keys();
std::span<const KeyInfo> keys_of(SectionId section);
// As people say it: "a rule", "metadata".
std::string_view name_of(SectionId section);
// How such a value is written, for messages and the reference: "a time such as 90s, 5m, 24h or 7d".
std::string_view form_of(ValueKind kind);

struct EventTypeInfo {
  std::string_view name;
  std::string_view meaning;
};
// Those of the daemon and those of the kernel log, by name.
std::span<const EventTypeInfo> all_event_types();
// The place in all_event_types(); -1 for what is none.
int event_type_index(std::string_view name);

// The words that a kind of value is one of; empty for what is no such kind.
std::vector<std::string> words_of(ValueKind kind);

}  // namespace gpuhealth::policy
