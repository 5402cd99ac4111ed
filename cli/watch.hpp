// SPDX-License-Identifier: Apache-2.0
// `watch` on a terminal: looks, draws, listens to keys until somebody leaves.
#pragma once

#include <functional>

#include "cli/machine.hpp"
#include "cli/page.hpp"
#include "core/error.hpp"

namespace gpuhealth::cli {

// Takes over standard output and input, and gives them back as they were. `first` is what the first look told.
void watch_screen(Machine first, const std::function<Result<Machine>()>& look, double interval, ColourChoice colour);

}  // namespace gpuhealth::cli
