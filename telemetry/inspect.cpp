// SPDX-License-Identifier: Apache-2.0
#include "telemetry/inspect.hpp"

#include <algorithm>
#include <utility>

#include "telemetry/clients.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/drm_nodes.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/proc.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr std::string_view kIdentityFiles = "identity files";

void at(Progress* progress, const PciAddress& address, std::string_view file) {
  if (progress != nullptr) progress->at(pack(address), file);
}

std::vector<Reading> all_stuck() {
  std::vector<Reading> out(kPlainReadingCount);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = {static_cast<ReadingId>(i), ReadingStatus::Stuck, 0, 0};
  return out;
}

// What can be said of a device without touching what hangs: where only sensors do, its identity is read.
Inspected of_stuck(const std::string& sysroot, const Unanswering& stuck, const NameTable& names) {
  Inspected out;
  out.stuck_in = stuck.file;
  out.device.pci = unpack(stuck.device);
  if (stuck.file != kIdentityFiles) {
    if (auto device = identify(sysroot, out.device.pci, names)) out.device = std::move(*device);
  }
  out.sample.readings = all_stuck();
  return out;
}

Inspected look_at(const std::string& sysroot, DeviceInfo device, Progress* progress) {
  Inspected out;
  at(progress, device.pci, "its sensor files (opening them)");
  Sampler sampler(sysroot, device, progress);
  const auto now = SystemClock().now();
  sampler.sample(true, now.steady, out.sample);
  out.sample.time = now;
  if (const auto bytes = sampler.metrics(); !bytes.empty()) out.metrics = decode_gpu_metrics(bytes);
  out.sources = sampler.sources();
  at(progress, device.pci, "power/runtime_status");
  out.runtime_status = read_text_or_empty(device_dir(sysroot, device.pci) + "/power/runtime_status");
  out.device = std::move(device);
  return out;
}

void add_clients(const std::string& sysroot, const Clock& clock, std::vector<Inspected>& devices) {
  std::vector<PciAddress> gpus;
  gpus.reserve(devices.size());
  for (const auto& one : devices) gpus.push_back(one.device.pci);
  ClientScanner scanner(sysroot, 0);
  const auto found = scanner.look(gpus, clock.now().steady);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const auto& client : found[i].look.clients)
      devices[i].clients.push_back({client, process_name(sysroot, client.pid, client.started)});
  }
}

}  // namespace

Result<Inspection> inspect(const std::string& sysroot_given, std::span<const Unanswering> stuck, Progress* progress,
                           std::uint16_t vendor) {
  const std::string sysroot = sysroot_given == "/" ? std::string() : sysroot_given;
  const auto names = NameTable::load();
  Inspection out;
  const auto may_touch = [&](const PciAddress& address) {
    const bool untouched = std::ranges::find(stuck, pack(address), &Unanswering::device) != stuck.end();
    if (!untouched) at(progress, address, kIdentityFiles);
    return !untouched;
  };
  const auto addresses = list_gpus(sysroot, out.notes, may_touch, vendor);
  if (!addresses) return tl::unexpected(addresses.error());
  if (progress != nullptr) progress->idle();
  out.amdgpu = read_driver_module(sysroot);
  std::vector<DeviceInfo> devices;
  for (const auto& address : *addresses) {
    at(progress, address, kIdentityFiles);
    if (auto device = identify(sysroot, address, names)) devices.push_back(std::move(*device));
  }
  attach_drm_nodes(sysroot, devices);
  attach_compute_nodes(sysroot, devices);
  for (auto& device : devices) out.devices.push_back(look_at(sysroot, std::move(device), progress));
  if (progress != nullptr) progress->idle();
  if (std::ranges::find(stuck, Progress::kNoDevice, &Unanswering::device) == stuck.end())
    add_clients(sysroot, SystemClock(), out.devices);
  else
    out.notes.emplace_back("who uses the GPUs is not known: a read about it does not return");
  for (const auto& one : stuck)
    if (one.device != Progress::kNoDevice) out.devices.push_back(of_stuck(sysroot, one, names));
  std::ranges::sort(out.devices, {}, [](const Inspected& one) { return one.device.pci; });
  return out;
}

}  // namespace gpuhealth::telemetry
