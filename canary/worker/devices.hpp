// SPDX-License-Identifier: Apache-2.0
// Which devices a runtime sees and by which numbers, for those who set HIP_VISIBLE_DEVICES and its like. Runtimes are
// loaded in a child of its own, which may hang or end: after its deadline it is left behind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "canary/worker/gpu.hpp"
#include "core/error.hpp"
#include "core/pci.hpp"

namespace gpuhealth::canary {

struct RuntimeDevice {
  int ordinal = 0;  // the runtime's own number; of OpenCL over all platforms
  std::optional<PciAddress> pci;
  std::string name;
};
// ErrorCode::Unavailable: the runtime is not installed, or cannot be used. In this process.
Result<std::vector<RuntimeDevice>> list_opencl_devices();
Result<std::vector<RuntimeDevice>> list_driver_devices(const std::string& backend);  // "hip" or "cuda"

// Prints a JSON object a line: {"runtime", "ordinal", "pci", "name"}, or {"runtime", "problem"}.
void print_runtime_devices(const std::string& backend, double deadline_s);

}  // namespace gpuhealth::canary
