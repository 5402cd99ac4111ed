// SPDX-License-Identifier: Apache-2.0
// What the bus tells of one action: one that was carried out, or one that a rule decided and that is not done (observe,
// shadow, blocked). Server and client share it.
#pragma once

#include <string>

#include "core/clock.hpp"

namespace gpuhealth::dbus {

struct ActionView {
  std::string id;      // of the ledger; "decision-7", "new-3" of what is not written down there
  std::string kind;    // "power-cap"
  std::string device;  // DeviceInfo::id(); empty: the machine
  std::string device_label;
  std::string state;  // of actions/states.def, or "observed", "shadow", "blocked", "refused", "queued", "running", …
  std::string policy, rule, reason;
  std::string text;  // what came of it
  std::string before, wanted, after;
  WallTime fault, detected, acted, verified;  // zero: not yet
  WallTime confirm_by;                        // zero: no time is set
  bool reversible = false;
  friend bool operator==(const ActionView&, const ActionView&) = default;
};

}  // namespace gpuhealth::dbus
