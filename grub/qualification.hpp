// SPDX-License-Identifier: Apache-2.0
// What is known of each kernel on this machine: a state machine, drawn in docs/kernel-selection.md with the same names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/tree.hpp"

namespace gpuhealth::grub {

enum class QualificationState : std::uint8_t {
  Installed,
  Held,
  TrialArmed,
  Booted,
  Qualifying,
  Blessed,
  Rejected,
  NeverCameBack,
};
std::string_view to_string(QualificationState state);  // "installed", "trial-armed", "never-came-back", …
std::optional<QualificationState> qualification_state_from(std::string_view name);

enum class QualificationEvent : std::uint8_t {
  Held,         // hold is on, and this kernel is not the default
  Armed,        // the next boot is its trial
  SeenRunning,  // this kernel runs, in another boot than the one that armed it
  SeenOther,    // another kernel of this system runs, in another boot than the one that armed it
  SeenAway,     // it was not tried to the end, and not for a fault of its own: another system, an orderly shutdown
  CanariesStarted,
  CanariesPassed,
  CanariesFailed,
  BlessedByPerson,
  RejectedByPerson,
  BuildChanged,  // the package was updated under the same release: what was known is of another kernel
  Asked,         // a person wants the running kernel to be qualified again
};
std::string_view to_string(QualificationEvent event);

struct Qualification {
  QualificationState state = QualificationState::Installed;
  std::string armed_in_boot;  // boot id of the boot that armed the trial
  std::string build;          // `uname -v` that the state is about; empty: not known
  std::int64_t since = 0;     // seconds since 1970
  int trials = 0;             // without a person's word at most one
  std::string reason;
  std::string seen_in_boot;       // boot id of the last boot in which it was seen running
  std::vector<std::string> gpus;  // that it was blessed with, DeviceInfo::id(); empty: not known
  // Its trial has no verdict yet.
  [[nodiscard]] bool on_trial() const { return !armed_in_boot.empty(); }
};

struct Qualifications {
  std::map<std::string, Qualification> kernels;  // by release
};

struct Occasion {
  std::string boot_id;
  WallTime now;
  std::string build;
};

// The state after the event, or null where the event means nothing in that state.
std::optional<QualificationState> next_state(QualificationState state, QualificationEvent event);
// Does it, with what goes with it. False: nothing changed.
bool advance(Qualification& qualification, QualificationEvent event, const Occasion& occasion, std::string reason = {});

// May the daemon arm a trial by itself? One trial a build; a person may always.
bool may_try_by_itself(const Qualification& qualification);

// What a boot shows of the boots before it.
struct BootSigns {
  std::string running;                // release
  std::string build;                  // its `uname -v`; empty: not known
  std::string boot_id;                // of this boot
  bool one_shot_pending = false;      // the boot loader has not taken the trial's one-shot
  std::optional<bool> entry_started;  // what the trial's own entry wrote into grubenv; null: this loader writes nothing
  std::string ended_in_order;         // boot id of the last boot at whose end the daemon was told to stop
};
struct Became {
  std::string release;
  QualificationEvent event{};
  std::string reason;
};
// What has become of every kernel that was under way, and that the running one runs. Once a boot.
std::vector<Became> what_became(const Qualifications& all, const BootSigns& signs);

struct Transition {
  QualificationState from;
  QualificationEvent event;
  QualificationState to;
};
std::span<const Transition> all_transitions();

inline constexpr std::string_view kQualificationFile = "/var/lib/gpuhealthd/qualification.json";
Qualifications read_qualifications(const Tree& tree);
std::string qualifications_text(const Qualifications& all);  // empty: nothing is known

}  // namespace gpuhealth::grub
