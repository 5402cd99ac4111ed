// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace gpuhealth::daemon {

// Holds STATE_DIR/lock for as long as the descriptor lives: two daemons on one history would each be wrong. Error
// Exhausted when another process holds it, with its pid. A folder that cannot be written gives an empty descriptor:
// the daemon watches without history, and nobody can share what is not there.
Result<Fd> be_the_only_one(const std::string& state_dir);

}  // namespace gpuhealth::daemon
