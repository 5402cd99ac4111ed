// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/error.hpp"

namespace gpuhealth::sim {

// Runs `inside` as PID 1 of mount, pid, net, ipc and uts namespaces of its own (and a user namespace when the caller is
// not root), with a /proc of its own and a loopback that is up. Returns its value once everything inside has ended.
// Whatever way this process ends, nothing inside survives it, and no mount of it is seen outside.
Result<int> run_isolated(const std::function<int()>& inside);

}  // namespace gpuhealth::sim
