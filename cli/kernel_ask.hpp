// SPDX-License-Identifier: Apache-2.0
// What gpuhealthctl kernel asks of the daemon, and how it waits for a verdict.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "dbus/kernel.hpp"

namespace gpuhealth::cli {

// Over the bus, where polkit decides: for who is not root, and for what only the daemon can do.
ExitCode ask_daemon(const Context& context, const dbus::KernelRequest& request, const std::string& done);

// Until the running kernel of this tree has a verdict: blessed is Ok, any other ConditionsPresent; none within
// `seconds`, Unavailable.
ExitCode wait_for_verdict(const Context& context, const std::string& root, unsigned seconds);

}  // namespace gpuhealth::cli
