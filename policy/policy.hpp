// SPDX-License-Identifier: Apache-2.0
// A policy as it is in memory: what docs/policy-reference.md describes, read and checked. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "canary/stats/judge.hpp"
#include "core/action.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/reading.hpp"
#include "core/yaml.hpp"
#include "policy/units.hpp"

namespace gpuhealth::policy {

// Observe: what would be done is said. Shadow: decided and counted as if it were done. Enforce: done.
enum class Mode : std::uint8_t { Observe, Shadow, Enforce };
std::string_view to_string(Mode mode);
std::optional<Mode> mode_from(std::string_view name);

struct Rate {
  std::uint32_t count = 0;
  Duration within{};
  friend bool operator==(const Rate&, const Rate&) = default;
};

struct Targets {
  std::vector<std::string> host;
  std::map<std::string, std::string> labels;
  std::vector<std::string> vendor, gfx, sku;
  std::optional<double> vram_at_least, vram_at_most;
  std::vector<std::string> distribution, kernel;
  // Says nothing of GPUs.
  [[nodiscard]] bool any_gpu() const {
    return vendor.empty() && gfx.empty() && sku.empty() && !vram_at_least && !vram_at_most;
  }
};

struct ConditionMatch {
  ConditionType type{};
  Severity at_least = Severity::Info;
  std::string cause;
};
struct ReadingMatch {
  ReadingId id{};
  Unit unit{};
  std::optional<double> above, below, at_least, at_most;
  std::optional<double> clear;
  std::uint8_t memory = 0;  // which of the rule's readings with hysteresis this is
};
struct CanaryMatch {
  std::string name;  // empty: any
  std::optional<canary::stats::FindingKind> finding;
  std::optional<double> slower_than;
};
struct EventMatch {
  int type = 0;  // its place in all_event_types()
  std::optional<ConditionType> condition;
  std::uint32_t count = 1;
  Duration within{};
  std::string after;  // a rule of the same policy; empty: none
};
struct AdvisoryMatch {
  std::string id;  // empty: any
};
struct When;
struct Group {
  enum class Kind : std::uint8_t { All, Any, Not } kind{};
  std::vector<When> parts;
};
struct When {
  std::variant<ConditionMatch, ReadingMatch, CanaryMatch, EventMatch, AdvisoryMatch, Group> what;
};

struct Unless {
  bool busy = false;
  bool battery = false;
  std::vector<Window> windows;
};

struct PlannedAction {
  ActionKind kind{};
  std::map<std::string, std::string> params;  // as ActionRequest has them
};

struct Rule {
  std::string name;
  std::string description;
  std::optional<Mode> mode;
  When when;
  Duration hold{};  // for:
  Duration clear_for{};
  Duration cooldown{};
  std::optional<Rate> budget;
  std::vector<PlannedAction> actions;
  std::optional<When> revert_when;
  Duration revert_hold{};
  Unless unless;
  int line = 0;
};

struct Policy {
  std::string file;
  std::string name;
  std::int64_t serial = 0;  // 0: none
  std::optional<WallTime> expires;
  std::string description;
  Targets targets;
  Mode mode = Mode::Observe;
  std::optional<Rate> actions;  // limits:
  std::optional<Rate> breaker;
  std::vector<Rule> rules;
};

// Exactly one of the two is of use: a file with a mistake is no policy.
struct ParsedPolicy {
  std::optional<Policy> policy;
  std::vector<yaml::Mistake> mistakes;  // by place
};
inline constexpr std::size_t kMostRules = 1000;    // of a file
inline constexpr std::size_t kMostMistakes = 100;  // of a file, then one that says that there are more
inline constexpr int kMostNesting = 8;             // of all, any and not
ParsedPolicy parse_policy(std::string_view file, std::string_view text);

// A machine-wide action: it is asked for once, whatever number of GPUs wants it.
bool concerns_machine(ActionKind kind);
// What two rules cannot both have on one GPU (or machine); empty: no such thing.
std::string_view resource_of(ActionKind kind);
bool changes_something(ActionKind kind);
// The hardware, or /run, forgets it when the machine starts anew.
bool ends_at_reboot(ActionKind kind);

}  // namespace gpuhealth::policy
