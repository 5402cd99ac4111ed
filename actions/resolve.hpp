// SPDX-License-Identifier: Apache-2.0
// One entry of the ledger brought to an end; the ledger is locked by who calls.
#pragma once

#include <string>
#include <vector>

#include "actions/actuator.hpp"
#include "actions/state.hpp"

namespace gpuhealth::actions {

// Actions in force on the same setting of the same device, this one among them; oldest first.
std::vector<LedgerEntry> on_same_setting(const Machine& machine, const LedgerEntry& entry);
// The driver remembers its settings while the GPU sleeps; to look at them would wake it.
bool sleeps(const Machine& machine, const LedgerEntry& entry, const Actuator& actuator);
// Writes the state down, with its time.
Result<void> set_state(const Machine& machine, Ledger& ledger, LedgerEntry& entry, ActionState state,
                       std::string note = {});
// Brings back what was there before, reads it back, and writes down what came of it. An error says what is there now.
Result<void> take_back(const Machine& machine, Ledger& ledger, LedgerEntry& entry, bool by_person,
                       const std::string& why);
// Every entry that a crash, a power cut or a reboot left behind. Returns one line for each that was resolved.
Result<std::vector<std::string>> resolve_all(const Machine& machine, Ledger& ledger, bool may_write,
                                             std::vector<std::string>& left);

}  // namespace gpuhealth::actions
