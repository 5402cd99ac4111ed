// SPDX-License-Identifier: Apache-2.0
// One look at every GPU of a tree, in this process: for gpuhealthctl inspect and for tests. The daemon uses the reader.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/sample.hpp"
#include "telemetry/driver_module.hpp"
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

// A process that uses a GPU, with its name where the caller may see it.
struct InspectedClient {
  GpuClient client;
  std::string name;
};

struct Inspected {
  DeviceInfo device;
  Sample sample;
  std::string runtime_status;                  // as the kernel writes it; empty where it does not
  std::optional<GpuMetrics> metrics;           // full decode, when there is a gpu_metrics file
  std::map<std::string, std::string> sources;  // reading name -> file it came from, relative to the device's folder
  std::vector<InspectedClient> clients;        // by pid; without root one's own only
};

struct Inspection {
  std::optional<DriverModule> amdgpu;  // null when the module is not loaded
  std::vector<Inspected> devices;      // by PCI address
  std::vector<std::string> notes;      // what was seen and left out, in words
};

// Looks at every GPU below SYSROOT/sys. Reads only files of the allow-list; wakes nothing.
Result<Inspection> inspect(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
