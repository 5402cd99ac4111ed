// SPDX-License-Identifier: Apache-2.0
// One look at a machine's GPUs with no daemon: a captured tree, or this machine's own /sys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/error.hpp"
#include "core/sample.hpp"
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::telemetry {

struct Inspected {  // one look at one device, offline
  DeviceInfo device;
  Sample sample;
  std::optional<GpuMetrics> metrics;           // full decode, when there is a gpu_metrics file
  std::map<std::string, std::string> sources;  // reading name -> file it came from, relative to the device's folder
};

struct Inspection {
  std::vector<Inspected> devices;
  std::vector<std::string> notes;
};

// Looks at every GPU below ROOT/sys. Reads only files of the allow-list; wakes nothing.
Result<Inspection> inspect(const std::string& sysroot);

}  // namespace gpuhealth::telemetry
