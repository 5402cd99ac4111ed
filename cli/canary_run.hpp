// SPDX-License-Identifier: Apache-2.0
// Starting the canary worker from the command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "core/error.hpp"

namespace gpuhealth::cli {

struct WorkerOutcome {
  int exit_code = 0;
  std::vector<canary::Measurement> lines;
};
// The worker beside this program, or in libexec. `progress`: a canary begins.
Result<WorkerOutcome> run_worker(const std::vector<std::string>& arguments,
                                 const std::function<void(const std::string& canary)>& progress);

// What the worker prints, line by line.
Result<std::vector<std::string>> worker_says(const std::vector<std::string>& arguments);

// What this program itself prints with these arguments, as a process of its own: reads of hardware may hang.
Result<std::string> this_program_says(const std::vector<std::string>& arguments);

// Appends lines to a file; they are whole lines or nothing.
Result<void> append_lines(const std::string& path, const std::string& lines);

}  // namespace gpuhealth::cli
