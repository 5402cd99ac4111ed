// SPDX-License-Identifier: Apache-2.0
// An action as JSON: how the daemon asks gpuhealth-act for one, and what that prints. docs/json.md has the keys.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "actions/carry_out.hpp"

namespace gpuhealth::actions {

using Json = nlohmann::ordered_json;

// {"action": "power-cap", "device": "uid-…", "params": {"watts": "250"}, "policy", "rule", "condition", "reason",
//  "event": {…}, "times": {"fault": …}, "probation_s": 900}
Result<Order> order_from(std::string_view text);
Json order_json(const Order& order);

Json outcome_json(const Outcome& outcome);
Json entry_json(const LedgerEntry& entry);  // one of `actions list`
Json error_json(const Error& error);

// "watts=250": adds it to the request.
Result<void> add_param(ActionRequest& request, const std::string& word);

}  // namespace gpuhealth::actions
