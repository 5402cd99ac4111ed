// SPDX-License-Identifier: Apache-2.0
// One look at every GPU of a tree: for gpuhealthctl inspect and for tests. The daemon uses the reader.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/sample.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/driver_module.hpp"
#include "telemetry/gpu_metrics.hpp"
#include "telemetry/sampler.hpp"

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
  std::string stuck_in;                        // the file whose read did not return; empty when it answers
  std::vector<InspectedClient> clients;        // by pid; without root one's own only
};

struct Inspection {
  std::optional<DriverModule> amdgpu;  // null when the module is not loaded
  std::vector<Inspected> devices;      // by PCI address
  std::vector<std::string> notes;      // what was seen and left out, in words
};

// A device that was found not to answer, and where.
struct Unanswering {
  std::uint64_t device = 0;  // packed, see pack(); Progress::kNoDevice: the look at the processes that use GPUs
  std::string file;
};

// Looks at every GPU below SYSROOT/sys. Reads only files of the allow-list; wakes nothing. Of those in `stuck` it reads
// no sensor: all their readings are Stuck. Any read may hang: who must not hang looks on at `progress` from outside.
// AMD's GPUs, or Intel's discrete ones.
Result<Inspection> inspect(const std::string& sysroot, std::span<const Unanswering> stuck = {},
                           Progress* progress = nullptr, std::uint16_t vendor = kVendorAmd);

}  // namespace gpuhealth::telemetry
