// SPDX-License-Identifier: Apache-2.0
// Doing it safely: interlocks, ledger, the steps, the read-back; confirm, revert, recover. What gpuhealth-act runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {

// An action that nobody found good by then is taken back.
inline constexpr std::chrono::minutes kProbation{15};

struct Order {
  ActionRequest request;
  std::string event;                         // JSON of the condition, for programs and bundles
  std::map<std::string, std::string> times;  // "fault", "detected": UTC
  bool dry_run = false;
  bool confirm = false;  // a person is sure: no probation
  std::chrono::seconds probation = kProbation;
};

struct Outcome {
  std::string action;
  std::string device, pci;
  std::string state;   // actions/states.def; "planned" and "nothing-to-do" besides
  std::string ledger;  // id; empty: nothing had to be written down
  std::string before, wanted, after;
  std::string confirm_by;
  std::string text;                // one sentence
  std::vector<std::string> steps;  // writes, in order
  std::vector<std::string> files;  // that were made
  std::vector<std::string> warnings;
  std::vector<std::string> resolved;  // entries of earlier runs that had not come to their end
};

// Whatever fails, the machine is as it was before, or the error and the ledger say what it is.
Result<Outcome> carry_out(const Machine& machine, const Order& order);

// A person, or the condition's end: it is good, and stays.
Result<Outcome> confirm(const Machine& machine, const std::string& id);
// The canary that showed the fault ran again, and was good.
Result<Outcome> note_verified(const Machine& machine, const std::string& id);
// Brings back what was there. By itself it leaves alone what somebody else has set since; a person's word goes.
Result<Outcome> revert(const Machine& machine, const std::string& id, bool by_person);
// Everything that is in force on devices, the newest first; what somebody else has set since is left alone. For the
// removal of the program: whatever fails, the rest is brought back, and `warnings` says what was not.
Result<Outcome> revert_all(const Machine& machine);
// At every start, and before every action: what did not come to its end is resolved. In safe mode nothing is written
// but the ledger, and what is left open is in `warnings`.
Result<Outcome> recover(const Machine& machine);
// After a resume or a reset of the device: what is in force and was forgotten is written again.
Result<Outcome> apply_again(const Machine& machine, const std::string& device);

// By id, by its number, or by a unique beginning.
Result<LedgerEntry> find_entry(const Tree& files, const std::string& id);
bool is_open(const LedgerEntry& entry);
// In force: applied or confirmed, and not taken back.
bool in_force(const LedgerEntry& entry);

}  // namespace gpuhealth::actions
