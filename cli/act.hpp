// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act, which makes the changes, run for a command: it prints what json.md says.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace gpuhealth::cli {

// `shown` makes the page of what it printed. Its errors are ours, its exit code too.
ExitCode run_act(const Context& context, const std::vector<std::string>& words,
                 const std::function<Page(const Json&)>& shown);

}  // namespace gpuhealth::cli
