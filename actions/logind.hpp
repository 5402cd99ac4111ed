// SPDX-License-Identifier: Apache-2.0
// The journal and logind, as real machines have them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actions/machine.hpp"

namespace gpuhealth::actions {

// Inhibitors of the kind that blocks a shutdown: "apt (unattended-upgrades): updates are being installed".
Result<std::vector<std::string>> logind_inhibitors();
// Tells logged-in people, and has logind reboot the machine when the notice is over.
Result<void> logind_reboot(const RebootWish& wish);
Result<void> journal_line(int priority, const std::string& text,
                          const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace gpuhealth::actions
