// SPDX-License-Identifier: Apache-2.0
// A worker as a unit of its own: an unprivileged user, its GPU's device nodes and no other, a folder for compilers'
// caches, a deadline, ended as a whole. The daemon itself may open no GPU. docs/canaries.md says what the unit is.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::daemon {

inline constexpr const char* kCanaryUser = "gpuhealth-canary";

struct CanaryUnit {
  std::string name;                // "gpuhealth-canary-0000:03:00.0.service": a second one cannot start
  std::vector<std::string> start;  // ends with the unit; its output is the worker's
  std::vector<std::string> stop;   // returns at once
};

// `owner`: the daemon's unit; the worker ends with it. `nodes`: device nodes that it may open.
CanaryUnit canary_unit(const std::string& owner, const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& device, const std::vector<std::string>& nodes, double limit_s);

// /dev/dri/renderD128, /dev/kfd, /dev/nvidia0 …: what the runtimes of the GPU at this address open.
std::vector<std::string> device_nodes(const std::string& root, const std::string& device);

// The name of the unit that this process is the main process of, when workers can be units: started by systemd, as
// root, with the worker's user there. Else why not.
Result<std::string> owner_of_canary_units();

}  // namespace gpuhealth::daemon
