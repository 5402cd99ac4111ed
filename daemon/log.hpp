// SPDX-License-Identifier: Apache-2.0
// Lines to standard error: with the journal's "<N>" priority where it listens, plain for people.
#pragma once

#include <string_view>

#include "core/condition.hpp"

namespace gpuhealth::daemon {

void log_line(Severity severity, std::string_view text);

}  // namespace gpuhealth::daemon
