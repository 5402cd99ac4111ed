// SPDX-License-Identifier: Apache-2.0
// The vocabulary of decisions and actions: what can be asked for, with which parameters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth {

// Google Mock has a macro of this name.
#pragma push_macro("ACTION")
#undef ACTION
enum class ActionKind : std::uint8_t {
#define ACTION(id, name, risk, does, undo) id,
#define ACTION_PARAM(action, name, kind, required, standard, meaning)
#include "core/action.def"
#undef ACTION
#undef ACTION_PARAM
  Count,
};
#pragma pop_macro("ACTION")

// None changes nothing on the machine; Reversible has a prior value that comes back; Interrupts ends people's work;
// Unknown is the risk of somebody else's program.
enum class ActionRisk : std::uint8_t { None, Reversible, Interrupts, Unknown };

enum class ParamKind : std::uint8_t { Flag, Number, Word, Words, Text, TimeSpan, Bytes, Window, Urgency };

struct ActionParam {
  ActionKind action;
  std::string_view name;
  ParamKind kind;
  bool required;
  std::string_view standard;  // as written in a policy; empty: none
  std::string_view meaning;
};

struct ActionInfo {
  ActionKind kind;
  std::string_view name;  // "power-cap"
  ActionRisk risk;
  std::string_view does;
  std::string_view undo;
};
std::span<const ActionInfo> all_actions();
const ActionInfo& info(ActionKind kind);
std::string_view to_string(ActionKind kind);
std::optional<ActionKind> action_kind_from(std::string_view name);
std::vector<ActionParam> params_of(ActionKind kind);  // in the table's order

// What the policy wants and why. Values are checked against the table by who reads the policy: "250" for a number of
// 250, "30s", "true", words joined by a comma; absent parameters have the table's default.
struct ActionRequest {
  ActionKind kind{};
  std::string device;  // DeviceInfo::id(); empty: the machine
  std::map<std::string, std::string> params;
  std::string policy;  // the policy's name
  std::string rule;
  std::string condition;  // id of the condition that asks for it; empty: a person
  std::string reason;     // one sentence, with the evidence
};

}  // namespace gpuhealth
