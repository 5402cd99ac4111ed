// SPDX-License-Identifier: Apache-2.0
// A look at hardware in a process of its own: a read that does not return must not take the command with it.
#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "core/exit_codes.hpp"
#include "telemetry/inspect.hpp"

namespace gpuhealth::cli {

using Look = std::function<ExitCode(std::span<const telemetry::Unanswering> stuck, telemetry::Progress& progress)>;

// Runs `look` in a child and passes on what it prints. When no file was finished for `patience`, the device that it is
// at is stuck: the child is left behind, and another looks again without that device. Where it hangs outside a device,
// or cannot be started, the answer is Failed, with a message.
ExitCode look_apart(const Look& look, std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace gpuhealth::cli
