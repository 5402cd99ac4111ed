// SPDX-License-Identifier: Apache-2.0
// From a rule's planned action to a request: texts filled in, the reason as one sentence. Private to the evaluator.
#pragma once

#include <string>

#include "policy/match.hpp"

namespace gpuhealth::policy {

std::string key_of(const Policy& policy, const Rule& rule);  // "policy/rule"
// "thermal-throttling: junction 105 C; utilization.gfx is 99 % (above 50 %); for 5m"
std::string sentence(const Why& why, Duration hold);

struct RequestContext {
  const MachineFacts& machine;
  const DeviceState& device;
  const Policy& policy;
  const Rule& rule;
  const Condition* condition;  // null: none asks
  const std::string& reason;
};
ActionRequest make_request(const PlannedAction& action, const RequestContext& context);
// Braces are filled in; foreign text in them is one line without control characters, and bounded.
std::string expand(const std::string& text, const RequestContext& context);

}  // namespace gpuhealth::policy
