// SPDX-License-Identifier: Apache-2.0
// What gpuhealthctl actions shows: the ledger, and why nothing is changed where that is so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/json.hpp"
#include "cli/page.hpp"
#include "dbus/action_view.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::cli {

struct ActionsView {
  std::vector<LedgerEntry> entries;    // oldest first
  std::vector<std::string> safe_mode;  // reasons; empty: actions are carried out
  std::vector<std::string> problems;   // files of the ledger that cannot be read
  std::vector<dbus::ActionView> told;  // by the daemon, beyond the ledger: what is decided and not done
};

Json json_actions(const ActionsView& view);
Json json_action(const LedgerEntry& entry);
Json json_told(const dbus::ActionView& action);

Page render_actions(const ActionsView& view, const Terminal& terminal);
Page render_action(const LedgerEntry& entry, const Terminal& terminal);
Page render_action_outcome(const Json& outcome, const Terminal& terminal);  // of gpuhealth-act

}  // namespace gpuhealth::cli
