// SPDX-License-Identifier: Apache-2.0
// A condition: something that is wrong with a device, with a life cycle and its evidence. `unknown` is not `bad`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/reading.hpp"

namespace gpuhealth {

enum class Severity : std::uint8_t { Info, Warning, Critical };
std::string_view to_string(Severity severity);  // "info", "warning", "critical"
std::optional<Severity> severity_from(std::string_view name);

enum class ConditionType : std::uint8_t {
#define CONDITION(id, type, severity, title, meaning, advice) id,
#include "core/condition.def"
#undef CONDITION
  Count,
};

struct ConditionInfo {
  ConditionType type;
  std::string_view name;  // "overheating"
  Severity severity;      // unless the detector says otherwise
  std::string_view title;
  std::string_view meaning;
  std::string_view advice;
};
std::span<const ConditionInfo> all_conditions();
const ConditionInfo& info(ConditionType type);
std::optional<ConditionType> condition_type_from(std::string_view name);

// raised -> confirmed -> cleared. Raised: seen, not yet for long enough; nobody is told. Acknowledged is a mark on a
// confirmed condition: somebody knows, so it is shown and no longer announced.
enum class ConditionState : std::uint8_t { Raised, Confirmed, Cleared };
std::string_view to_string(ConditionState state);  // "raised", "confirmed", "cleared"
std::optional<ConditionState> condition_state_from(std::string_view name);

struct Evidence {
  std::string name;   // a reading's name, or a fact ("limit", "performance level")
  std::string value;  // as people read it: "112 C", "x4"
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

struct Condition {
  std::string id;  // stable for its life: "overheating-0000:03:00.0-1764515000", see condition_id()
  ConditionType type{};
  Severity severity = Severity::Warning;
  ConditionState state = ConditionState::Raised;
  bool acknowledged = false;
  std::string device;        // DeviceInfo::id()
  std::string device_label;  // "Radeon RX 7900 XTX at 0000:03:00.0", for people, also when the device is gone
  WallTime since;            // first seen
  WallTime last_seen;        // last sample that showed it
  WallTime cleared;          // meaningful when Cleared
  std::string boot_id;
  std::string detail;  // one sentence with the numbers
  std::vector<Evidence> evidence;
};

std::string condition_id(ConditionType type, std::string_view device, WallTime since);

}  // namespace gpuhealth
