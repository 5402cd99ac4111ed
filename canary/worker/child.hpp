// SPDX-License-Identifier: Apache-2.0
// The process that loads a runtime and runs canaries. It may abort, hang or be killed at any time; what it has found is
// already written. Speaks to its parent in lines: measurements as JSON, and words that begin with '@'.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/pci.hpp"

namespace gpuhealth::canary {

struct RunOptions {
  std::string backend;  // "ioctl", "hip", "opencl", "cuda"
  std::optional<PciAddress> device;
  bool allow_cpu = false;
  std::vector<std::string> canaries;  // names, in the suite's order
  double deadline_s = 30;             // of one canary
};

// "@start NAME", "@end NAME", "@device PCI", "@foreign PID", "@wait SHARE" (of its time that it waited for a
// processor).
[[noreturn]] void run_child(const RunOptions& options, int out_fd);

}  // namespace gpuhealth::canary
