// SPDX-License-Identifier: Apache-2.0
#include "cli/actions.hpp"
#include "cli/json.hpp"

namespace gpuhealth::cli {
namespace {

Json json_readings(std::span<const Reading> readings) {
  Json out = Json::object();
  for (const Reading& r : readings) {
    if (const ReadingInfo* row = find_reading(r.id)) out[std::string(row->name)] = json_reading(r);
  }
  return out;
}

Json json_device(const dbus::DeviceView& d) {
  Json out;
  out["id"] = d.id;
  out["pci"] = d.pci;
  out["name"] = text_or_null(d.name);
  out["other_names"] = d.other_names;
  out["vendor_id"] = d.vendor_id;
  out["device_id"] = d.device_id;
  out["subsystem_id"] = text_or_null(d.subsystem_id);
  out["driver"] = text_or_null(d.driver);
  out["unique_id"] = text_or_null(d.unique_id);
  out["vbios_version"] = text_or_null(d.vbios_version);
  out["family"] = d.family;
  out["gfx"] = text_or_null(d.gfx);
  out["runtime_status"] = d.runtime_status;
  out["performance_level"] = text_or_null(d.performance_level);
  out["power_profile"] = text_or_null(d.power_profile);
  out["health"] = d.health;
  out["firmware"] = Json::object();
  for (const auto& [part, version] : d.firmware) out["firmware"][part] = version;
  out["compute_nodes"] = json_compute_nodes(d.compute_nodes);
  out["compute_partition"] = text_or_null(d.compute_partition);
  out["memory_partition"] = text_or_null(d.memory_partition);
  out["xgmi_peers"] = d.xgmi_peers;
  out["clients"] = Json::array();
  for (const auto& c : d.clients) {
    const auto name = d.client_names.find(c.pid);
    out["clients"].push_back(json_client(c, name == d.client_names.end() ? "" : name->second));
  }
  out["throttle_known"] = d.throttle_known;
  out["throttle_reasons"] = d.throttle_reasons;
  out["sampled"] = time_or_null(d.sampled);
  out["readings"] = json_readings(d.readings);
  return out;
}

}  // namespace

Json json_devices(std::span<const dbus::DeviceView> devices) {
  Json out;
  out["devices"] = Json::array();
  for (const auto& d : devices) out["devices"].push_back(json_device(d));
  return out;
}

Json json_condition(const Condition& c) {
  const ConditionInfo& row = info(c.type);
  Json out;
  out["id"] = c.id;
  out["type"] = row.name;
  out["severity"] = to_string(c.severity);
  out["state"] = to_string(c.state);
  out["acknowledged"] = c.acknowledged;
  out["device"] = c.device;
  out["device_label"] = c.device_label;
  out["title"] = row.title;
  out["detail"] = c.detail;
  out["meaning"] = row.meaning;
  out["advice"] = row.advice;
  out["since"] = time_or_null(c.since);
  out["last_seen"] = time_or_null(c.last_seen);
  out["cleared"] = c.state == ConditionState::Cleared ? time_or_null(c.cleared) : Json(nullptr);
  out["boot_id"] = c.boot_id;
  out["evidence"] = Json::array();
  for (const Evidence& e : c.evidence) out["evidence"].push_back({{"name", e.name}, {"value", e.value}});
  return out;
}

Json json_conditions(std::span<const Condition> conditions) {
  Json out;
  out["conditions"] = Json::array();
  for (const Condition& c : conditions) out["conditions"].push_back(json_condition(c));
  return out;
}

Json json_explain(ConditionType type, std::span<const Condition> conditions) {
  const ConditionInfo& row = info(type);
  Json out;
  out["type"] = row.name;
  out["severity"] = to_string(row.severity);
  out["title"] = row.title;
  out["meaning"] = row.meaning;
  out["advice"] = row.advice;
  out["conditions"] = Json::array();
  for (const Condition& c : conditions) {
    if (c.type == type) out["conditions"].push_back(json_condition(c));
  }
  return out;
}

Json json_status(const Machine& machine) {
  const auto& m = machine.manager;
  const auto last = last_sample(machine);
  Json out;
  out["healthy"] = !needs_attention(machine);
  out["summary"] = summary(machine);
  out["daemon"] = {{"version", m.version},
                   {"boot_id", m.boot_id},
                   {"kernel_release", m.kernel_release},
                   {"amdgpu",
                    {{"version", text_or_null(m.amdgpu.version)},
                     {"srcversion", text_or_null(m.amdgpu.srcversion)},
                     {"parameters", m.amdgpu.parameters}}},
                   {"started", time_or_null(m.started)},
                   {"samples", m.samples},
                   {"last_sample", last ? time_or_null(*last) : Json(nullptr)},
                   {"store_problem", text_or_null(m.store_problem)},
                   {"config_problem", text_or_null(m.config_problem)}};
  out["policy"] = {{"mode", text_or_null(m.policy_mode)},
                   {"safe_mode", text_or_null(m.safe_mode)},
                   {"problem", text_or_null(m.policy_problem)},
                   {"breaker_open", m.breaker_open},
                   {"files", Json::array()}};
  for (const auto& file : m.policy_files) out["policy"]["files"].push_back(file);
  out["actions"] = Json::array();
  for (const auto& action : machine.actions) out["actions"].push_back(json_told(action));
  out["conditions"] = json_conditions(worst_first(machine.conditions))["conditions"];
  out["devices"] = json_devices(machine.devices)["devices"];
  return out;
}

Json json_change(const MachineChange& change, WallTime now) {
  return {{"time", time_or_null(now)},
          {"change", change.kind},
          {"severity", to_string(change.severity)},
          {"device", text_or_null(change.device)},
          {"text", change.text}};
}

Json json_error(const Error& error) {
  Json out;
  out["error"] = {{"code", to_string(error.code)}, {"text", error.text}};
  if (error.sys_errno != 0) out["error"]["errno"] = error.sys_errno;
  return out;
}

}  // namespace gpuhealth::cli
