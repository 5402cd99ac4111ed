// SPDX-License-Identifier: Apache-2.0
// The process that loads a runtime and runs canaries. It may abort, hang or be killed at any time; what it has found is
// already written. Speaks to its parent in lines: measurements as JSON, and words that begin with '@'.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "core/pci.hpp"

namespace gpuhealth::canary {

struct RunOptions {
  std::string backend;  // "ioctl", "hip", "opencl", "cuda"
  std::optional<PciAddress> device;
  bool allow_cpu = false;
  std::vector<std::string> canaries;  // names, in the suite's order
  double deadline_s = 30;             // of one canary
  bool idle_only = false;             // a GPU that somebody uses already is left alone, but for tier 0
};

double now_s();  // wall time, as measurements have it

// A line without a value: why there is none, with the software that it is about.
Measurement line_without_value(const CanaryInfo& row, const RunOptions& options, Status status, std::string reason,
                               std::string device, const std::map<std::string, std::string>& software);

// "@start NAME", "@end NAME", "@device PCI", "@foreign PID", "@wait SHARE" (of its time that it waited for a
// processor).
[[noreturn]] void run_child(const RunOptions& options, int out_fd);

}  // namespace gpuhealth::canary
