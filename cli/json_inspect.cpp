// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/json.hpp"

namespace gpuhealth::cli {
namespace {

Json hex4(std::uint16_t id) {
  return fmt::format("0x{:04x}", id);
}

Json subsystem(const DeviceInfo& d) {
  if (!d.subsystem_vendor || !d.subsystem_device) return nullptr;
  return fmt::format("0x{:04x}:0x{:04x}", *d.subsystem_vendor, *d.subsystem_device);
}

Json throttle_names(ThrottleSet set) {
  Json out = Json::array();
  for (const ThrottleInfo& row : all_throttle_reasons()) {
    if (set.contains(row.reason)) out.push_back(row.name);
  }
  return out;
}

// Every plain reading, those that the part does not have with a null value; RAS counters only where they are.
Json readings(const telemetry::Inspected& one) {
  Json out = Json::object();
  for (const ReadingInfo& row : all_readings()) {
    const Reading* found = one.sample.find(row.id);
    const bool plain = static_cast<std::size_t>(row.id) < kPlainReadingCount;
    if (found == nullptr && !plain) continue;
    Json reading = json_reading(found == nullptr ? Reading{row.id, ReadingStatus::Unsupported, 0, 0} : *found);
    const auto source = one.sources.find(std::string(row.name));
    if (source != one.sources.end()) reading["source"] = source->second;
    out[std::string(row.name)] = std::move(reading);
  }
  return out;
}

Json driver_module(const std::optional<DriverModule>& module) {
  if (!module) return nullptr;
  Json parameters = Json::object();
  for (const auto& [name, value] : module->parameters) parameters[name] = value;
  return {{"version", text_or_null(module->version)},
          {"srcversion", text_or_null(module->srcversion)},
          {"parameters", std::move(parameters)}};
}

Json one_condition(const Condition& c) {
  const ConditionInfo& row = info(c.type);
  Json evidence = Json::array();
  for (const Evidence& e : c.evidence) evidence.push_back({{"name", e.name}, {"value", e.value}});
  return {
      {"type", row.name},   {"severity", to_string(c.severity)}, {"state", to_string(c.state)}, {"title", row.title},
      {"detail", c.detail}, {"evidence", std::move(evidence)},   {"advice", row.advice}};
}

Json one_device(const telemetry::Inspected& one, std::span<const Condition> conditions) {
  const DeviceInfo& d = one.device;
  Json out;
  out["id"] = d.id();
  out["pci"] = to_string(d.pci);
  out["vendor_id"] = hex4(d.vendor_id);
  out["device_id"] = d.device_id == 0 ? Json(nullptr) : hex4(d.device_id);  // a tree that does not say
  out["subsystem_id"] = subsystem(d);
  out["revision"] = d.revision ? Json(fmt::format("0x{:02x}", *d.revision)) : Json(nullptr);
  out["driver"] = text_or_null(d.driver);
  out["name"] = text_or_null(d.name);
  out["other_names"] = d.other_names;
  out["family"] = to_string(d.family);
  out["gfx"] = text_or_null(d.gfx);
  out["unique_id"] = text_or_null(d.unique_id);
  out["serial"] = text_or_null(d.serial);
  out["vbios_version"] = text_or_null(d.vbios_version);
  out["vram_vendor"] = text_or_null(d.vram_vendor);
  out["runtime_status"] = text_or_null(one.runtime_status);
  out["performance_level"] = text_or_null(one.sample.performance_level);
  out["power_profile"] = text_or_null(one.sample.power_profile);
  out["firmware"] = Json::object();
  for (const auto& [part, version] : d.firmware) out["firmware"][part] = version;
  out["compute_nodes"] = json_compute_nodes(d.compute_nodes);
  out["compute_partition"] = text_or_null(d.compute_partition);
  out["memory_partition"] = text_or_null(d.memory_partition);
  out["xgmi_peers"] = Json::array();
  for (const auto& peer : d.xgmi_peers) out["xgmi_peers"].push_back(to_string(peer));
  out["clients"] = Json::array();
  for (const auto& c : one.clients) out["clients"].push_back(json_client(c.client, c.name));
  out["readings"] = readings(one);
  out["gpu_metrics"] = one.metrics ? json_metrics(*one.metrics) : Json(nullptr);
  out["throttle_known"] = one.sample.throttle_known;
  out["throttle_reasons"] = throttle_names(one.sample.throttle);
  out["throttle_reasons_gated"] = throttle_names(one.sample.throttle_gated);
  out["conditions"] = Json::array();
  for (const Condition& c : conditions) out["conditions"].push_back(one_condition(c));
  return out;
}

}  // namespace

Json json_inspect(const telemetry::Inspection& inspection, std::span<const std::vector<Condition>> conditions) {
  std::vector<std::size_t> order(inspection.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(inspection.devices[i].device.pci, i); });
  Json out;
  out["devices"] = Json::array();
  for (const std::size_t i : order) {
    const std::span<const Condition> own = i < conditions.size() ? conditions[i] : std::span<const Condition>();
    out["devices"].push_back(one_device(inspection.devices[i], own));
  }
  out["amdgpu"] = driver_module(inspection.amdgpu);
  out["notes"] = inspection.notes;
  return out;
}

}  // namespace gpuhealth::cli
