// SPDX-License-Identifier: Apache-2.0
#include "telemetry/inspect.hpp"

#include "telemetry/clients.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/proc.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

void add_clients(const std::string& sysroot, const Clock& clock, std::vector<Inspected>& devices) {
  std::vector<PciAddress> gpus;
  for (const auto& one : devices) gpus.push_back(one.device.pci);
  ClientScanner scanner(sysroot, 0);
  const auto found = scanner.look(gpus, clock.now().steady);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const auto& client : found[i].look.clients)
      devices[i].clients.push_back({client, process_name(sysroot, client.pid, client.started)});
  }
}

}  // namespace

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
  add_clients(sysroot, clock, out.devices);
  return out;
}

}  // namespace gpuhealth::telemetry
