// SPDX-License-Identifier: Apache-2.0
#include "telemetry/inspect.hpp"

#include "telemetry/discovery.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
Result<Inspection> inspect(const std::string& sysroot_given) {
  const std::string sysroot = sysroot_given == "/" ? std::string() : sysroot_given;
  const auto names = NameTable::load();
  auto found = discover(sysroot, names);
  if (!found) return tl::unexpected(found.error());
  Inspection out;
  out.notes = std::move(found->notes);
  out.amdgpu = read_driver_module(sysroot);
  const SystemClock clock;
  for (auto& device : found->devices) {
    Inspected one;
    Sampler sampler(sysroot, device);
    const auto now = clock.now();
    sampler.sample(true, now.steady, one.sample);
    one.sample.time = now;
    if (const auto bytes = sampler.metrics(); !bytes.empty()) one.metrics = decode_gpu_metrics(bytes);
    one.sources = sampler.sources();
    one.runtime_status = read_text_or_empty(device_dir(sysroot, device.pci) + "/power/runtime_status");
    one.device = std::move(device);
    out.devices.push_back(std::move(one));
  }
  return out;
}

}  // namespace gpuhealth::telemetry
