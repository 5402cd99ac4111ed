// SPDX-License-Identifier: Apache-2.0
// Having a running daemon measure: one canary at a time on a GPU, its results among the daemon's own.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/canary_run.hpp"
#include "dbus/job.hpp"

namespace gpuhealth::cli {

// Nothing where no daemon runs, or one that runs no canaries: the caller measures itself. `progress`: what is to be
// shown while it goes on. `each_gpu`: where the request names none, all that are awake, one after another.
std::optional<Result<WorkerOutcome>> measure_by_daemon(const std::string& bus, const dbus::JobRequest& request,
                                                       bool each_gpu,
                                                       const std::function<void(const std::string&)>& progress);

}  // namespace gpuhealth::cli
