// SPDX-License-Identifier: Apache-2.0
// What carries out one kind of action. An actuator only says what has to be written and reads back what is there;
// carry_out.cpp does it, ledger first. One file each, one row each in actuators.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actions/machine.hpp"
#include "actions/params.hpp"
#include "core/action.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::actions {

struct Asked {
  const Machine* machine = nullptr;
  const ActionRequest* request = nullptr;
  Params params;
  std::optional<Target> target;
  std::string event;      // JSON: the condition that asks for it
  bool by_person = true;  // else a rule
  bool dry_run = false;
};

struct Plan {
  LedgerEntry entry;    // steps, back, facts, before, wanted
  std::string already;  // not empty: nothing has to be written, and this says why
};

struct Report {
  std::string text;                // what was done, in one sentence
  std::vector<std::string> files;  // that were made
  std::vector<std::string> warnings;
  std::string ledger;  // id of the entry, where it keeps its own
};

// How a change that was cut off is resolved.
enum class Recovery : std::uint8_t {
  Back,     // what was there before comes back
  Forward,  // the steps are done again: they may be done twice
  Note,     // nothing can be done; it is said
};

struct Actuator {
  ActionKind kind{};
  bool on_device = false;
  Recovery recovery = Recovery::Back;
  bool needs_idle = false;     // refused while programs use the GPU, unless with_jobs
  bool needs_dark = false;     // refused while a display hangs on it, unless with_display
  bool spares_others = false;  // what somebody else has set since stays, also when a person reverts ours
  bool own_ledger = false;     // `perform` writes its own entries
  Result<Plan> (*plan)(const Asked& asked) = nullptr;
  // What is in force now, in the words of `before` and `wanted`.
  Result<std::string> (*observe)(const Machine& machine, const LedgerEntry& entry) = nullptr;
  // Whether it has the effect that it should have; null: what is in force is the effect.
  Result<void> (*verify)(const Machine& machine, const LedgerEntry& entry) = nullptr;
  // Instead of steps, for what changes nothing on the hardware.
  Result<Report> (*perform)(const Asked& asked) = nullptr;
};

std::span<const Actuator* const> all_actuators();
const Actuator* actuator_for(ActionKind kind);  // null: not done by gpuhealth-act
const Actuator* actuator_for(const LedgerEntry& entry);

// The rows, one file each.
extern const Actuator kPowerCap, kPcieSpeed, kPerformanceLevel, kPowerProfile, kClockCap, kGpuReset, kPciRescan, kDrain,
    kSlurmDrain, kReboot, kNotify, kCollectEvidence, kRunHook, kKernelPin, kKernelTrial, kKernelHold;
// What was asked of the boot loader is taken back as a whole.
Result<Report> take_back_kernel(const Machine& machine, const LedgerEntry& entry);

// Steps.
LedgerStep value_step(std::string path, std::string value);
LedgerStep program_step(const std::vector<std::string>& words);
Result<void> do_step(const Machine& machine, const LedgerStep& step);
std::string describe(const LedgerStep& step);  // "write 250000000 to /sys/…"

}  // namespace gpuhealth::actions
