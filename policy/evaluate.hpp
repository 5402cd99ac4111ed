// SPDX-License-Identifier: Apache-2.0
// What the policies want, and why. Pure: no clock, no files, no order of calls but the state's; the same arguments give
// the same decisions. The daemon, policy tests and replay use this one function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/action.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "policy/policy.hpp"
#include "policy/snapshot.hpp"

namespace gpuhealth::policy {

// All policies in force, in the order of their files; a rule that stands earlier decides earlier.
struct PolicySet {
  std::vector<Policy> policies;
};

enum class Outcome : std::uint8_t {
  Act,      // enforce: the actions are to be carried out
  Shadow,   // they would be, in enforce; counted as if they were
  Observe,  // the rule holds; this is what it is for
  Blocked,  // it would, but for `block`; said once for each reason, and tried again
  Revert,   // undo these
};
std::string_view to_string(Outcome outcome);  // "act", …

enum class Block : std::uint8_t { None, Cooldown, Budget, MachineLimit, Breaker, Busy, Battery, Window, Conflict };
std::string_view to_string(Block block);  // "cooldown", "budget", "machine-limit", …

struct Decision {
  Outcome outcome{};
  Block block = Block::None;
  Mode mode{};
  std::string policy, rule, file;
  std::string device;  // DeviceState::id
  std::vector<ActionRequest> actions;
  std::string reason;  // one sentence
};

// When something happened, good across a reboot: steady time within a boot, wall time (never less than none) beyond.
struct Stamp {
  std::int64_t wall_us = 0;
  std::int64_t steady_us = 0;
  bool this_boot = true;
};
Duration age(const Stamp& stamp, const Now& now);

// What the evaluator remembers from one call to the next. A value: copy it to try something out.
struct State {
  struct Cell {  // of one rule and one GPU
    std::int64_t held_us = 0;
    std::int64_t cleared_us = 0;
    std::uint16_t memory = 0;  // hysteresis, a bit a reading
    std::int8_t last = 0;      // 1 it held at the last look, -1 it did not, 0 not known
    bool active = false;       // it has held for long enough, and is not over
    bool fired = false;        // the decision of this episode is made
    Mode fired_as{};           // in this mode; a higher one decides anew
    Block said = Block::None;
  };
  struct Firing {
    std::string device;
    Stamp at;
    Mode mode{};
  };
  struct Change {  // an action that changes something
    Stamp at;
    Mode mode{};
  };
  struct Hold {          // something is changed and can be undone, or must not be asked for twice
    std::string rule;    // its key
    std::string device;  // whose episode it is
    Mode mode{};
    ActionRequest request;
    std::int64_t revert_held_us = 0;
    std::int8_t revert_last = 0;
  };
  std::string boot_id;
  std::optional<Stamp> last;
  std::int64_t boot_wall_us = 0;             // the last look of the boot before; 0: none
  std::vector<std::string> rules;            // keys: "policy/rule"
  std::vector<std::string> devices;          // ids
  std::vector<Cell> cells;                   // rules.size() x devices.size()
  std::vector<std::vector<Firing>> firings;  // by rule
  std::vector<Change> changes;
  std::vector<Hold> holds;
  std::optional<Stamp> breaker;  // open since; closed by reset_breaker() only
};
std::string save(const State& state);  // JSON
Result<State> load_state(std::string_view text);
void reset_breaker(State& state);
// It was refused: nothing is in place that could be undone, or that another rule would have to wait for.
void forget_hold(State& state, const ActionRequest& request);
// The episode of this rule ("policy/rule") about this GPU goes on.
bool is_active(const State& state, const std::string& rule, const std::string& device);
// Whether a call of evaluate() could decide anything, or has to count time. No means: it may be left out.
bool may_matter(const Snapshot& snapshot, const PolicySet& set, const State& state);
// How far back rules look for events.
Duration longest_window(const PolicySet& set);

struct EvaluateOptions {
  Mode ceiling = Mode::Enforce;  // safe mode: Observe
  // What lies further apart than this (a suspend, a stopped daemon) counts for no `for`.
  Duration longest_step = Duration::max();
};
struct Evaluation {
  std::vector<Decision> decisions;
  State state;
  bool breaker_tripped = false;  // just now
};
Evaluation evaluate(const Snapshot& snapshot, const PolicySet& set, State state, const Now& now,
                    const EvaluateOptions& options = {});

// A clock that jumps while a machine starts (no battery, no network yet) renews no budget: so long after the start,
// what lies in earlier boots is no older than if the machine had been off for no time.
inline constexpr std::chrono::minutes kClockSettles{10};
// Of files that say nothing of their own.
inline constexpr Rate kStandardActions{12, std::chrono::hours(24)};
inline constexpr Rate kStandardBreaker{6, std::chrono::minutes(10)};

}  // namespace gpuhealth::policy
