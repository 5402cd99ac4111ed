// SPDX-License-Identifier: Apache-2.0
#include "dbus/views.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "dbus/names.hpp"
#include "dbus/records.hpp"

namespace gpuhealth::dbus {
namespace {

// How a property of a given type gets into a view. One row a property; one that has no row is left out.
template <class View>
struct Row {
  std::string_view name;
  const char* type;
  void (*read)(Reader&, View&);
};

// A condition whose type, severity or state this version does not know is left out.
struct OpenCondition {
  Condition condition;
  bool type_known = false;
  bool severity_known = false;
  bool state_known = false;
};

std::map<std::string, std::string> read_dictionary(Reader& in) {
  std::map<std::string, std::string> out;
  if (!in.enter('a', "{ss}")) return out;
  while (in.enter('e', "ss")) {
    std::string key = in.text();
    out[std::move(key)] = in.text();
    in.leave();
  }
  in.leave();
  return out;
}

void read_partitions(Reader& in, DeviceView& v) {
  if (!in.enter('r', "ss")) return;
  v.compute_partition = in.text();
  v.memory_partition = in.text();
  in.leave();
}

template <class Enum>
bool assign(Enum& to, std::optional<Enum> from) {
  if (from) to = *from;
  return from.has_value();
}

constexpr auto kManagerRows = std::to_array<Row<ManagerView>>({
    {"Version", "s", [](Reader& in, ManagerView& v) { v.version = in.text(); }},
    {"BootId", "s", [](Reader& in, ManagerView& v) { v.boot_id = in.text(); }},
    {"KernelRelease", "s", [](Reader& in, ManagerView& v) { v.kernel_release = in.text(); }},
    {"AmdgpuVersion", "s", [](Reader& in, ManagerView& v) { v.amdgpu.version = in.text(); }},
    {"AmdgpuSrcversion", "s", [](Reader& in, ManagerView& v) { v.amdgpu.srcversion = in.text(); }},
    {"AmdgpuParameters", "a{ss}", [](Reader& in, ManagerView& v) { v.amdgpu.parameters = read_dictionary(in); }},
    {"Started", "t", [](Reader& in, ManagerView& v) { v.started = in.time(); }},
    {"Samples", "t", [](Reader& in, ManagerView& v) { v.samples = in.u64(); }},
    {"StoreProblem", "s", [](Reader& in, ManagerView& v) { v.store_problem = in.text(); }},
    {"ConfigProblem", "s", [](Reader& in, ManagerView& v) { v.config_problem = in.text(); }},
    {"Health", "s", [](Reader& in, ManagerView& v) { v.health = in.text(); }},
    {"PolicyMode", "s", [](Reader& in, ManagerView& v) { v.policy_mode = in.text(); }},
    {"SafeMode", "s", [](Reader& in, ManagerView& v) { v.safe_mode = in.text(); }},
    {"PolicyProblem", "s", [](Reader& in, ManagerView& v) { v.policy_problem = in.text(); }},
    {"BreakerOpen", "b", [](Reader& in, ManagerView& v) { v.breaker_open = in.flag(); }},
    {"PolicyFiles", "as", [](Reader& in, ManagerView& v) { v.policy_files = read_texts(in); }},
});

constexpr auto kActionRows = std::to_array<Row<ActionView>>({
    {"Id", "s", [](Reader& in, ActionView& v) { v.id = in.text(); }},
    {"Kind", "s", [](Reader& in, ActionView& v) { v.kind = in.text(); }},
    {"Device", "s", [](Reader& in, ActionView& v) { v.device = in.text(); }},
    {"DeviceLabel", "s", [](Reader& in, ActionView& v) { v.device_label = in.text(); }},
    {"State", "s", [](Reader& in, ActionView& v) { v.state = in.text(); }},
    {"Policy", "s", [](Reader& in, ActionView& v) { v.policy = in.text(); }},
    {"Rule", "s", [](Reader& in, ActionView& v) { v.rule = in.text(); }},
    {"Reason", "s", [](Reader& in, ActionView& v) { v.reason = in.text(); }},
    {"Text", "s", [](Reader& in, ActionView& v) { v.text = in.text(); }},
    {"Before", "s", [](Reader& in, ActionView& v) { v.before = in.text(); }},
    {"Wanted", "s", [](Reader& in, ActionView& v) { v.wanted = in.text(); }},
    {"After", "s", [](Reader& in, ActionView& v) { v.after = in.text(); }},
    {"Fault", "t", [](Reader& in, ActionView& v) { v.fault = in.time(); }},
    {"Detected", "t", [](Reader& in, ActionView& v) { v.detected = in.time(); }},
    {"Acted", "t", [](Reader& in, ActionView& v) { v.acted = in.time(); }},
    {"Verified", "t", [](Reader& in, ActionView& v) { v.verified = in.time(); }},
    {"ConfirmBy", "t", [](Reader& in, ActionView& v) { v.confirm_by = in.time(); }},
    {"Reversible", "b", [](Reader& in, ActionView& v) { v.reversible = in.flag(); }},
});

constexpr auto kDeviceRows = std::to_array<Row<DeviceView>>({
    {"Id", "s", [](Reader& in, DeviceView& v) { v.id = in.text(); }},
    {"Pci", "s", [](Reader& in, DeviceView& v) { v.pci = in.text(); }},
    {"Name", "s", [](Reader& in, DeviceView& v) { v.name = in.text(); }},
    {"OtherNames", "as", [](Reader& in, DeviceView& v) { v.other_names = read_texts(in); }},
    {"VendorId", "s", [](Reader& in, DeviceView& v) { v.vendor_id = in.text(); }},
    {"DeviceId", "s", [](Reader& in, DeviceView& v) { v.device_id = in.text(); }},
    {"SubsystemId", "s", [](Reader& in, DeviceView& v) { v.subsystem_id = in.text(); }},
    {"Driver", "s", [](Reader& in, DeviceView& v) { v.driver = in.text(); }},
    {"UniqueId", "s", [](Reader& in, DeviceView& v) { v.unique_id = in.text(); }},
    {"VbiosVersion", "s", [](Reader& in, DeviceView& v) { v.vbios_version = in.text(); }},
    {"Family", "s", [](Reader& in, DeviceView& v) { v.family = in.text(); }},
    {"Gfx", "s", [](Reader& in, DeviceView& v) { v.gfx = in.text(); }},
    {"ComputeNodes", "a(utusiu)", [](Reader& in, DeviceView& v) { v.compute_nodes = read_compute_nodes(in); }},
    {"Partitions", "(ss)", read_partitions},
    {"XgmiPeers", "as", [](Reader& in, DeviceView& v) { v.xgmi_peers = read_texts(in); }},
    {"Firmware", "a{ss}", [](Reader& in, DeviceView& v) { v.firmware = read_dictionary(in); }},
    {"RuntimeStatus", "s", [](Reader& in, DeviceView& v) { v.runtime_status = in.text(); }},
    {"Health", "s", [](Reader& in, DeviceView& v) { v.health = in.text(); }},
    {"PerformanceLevel", "s", [](Reader& in, DeviceView& v) { v.performance_level = in.text(); }},
    {"PowerProfile", "s", [](Reader& in, DeviceView& v) { v.power_profile = in.text(); }},
    {"ThrottleReasons", "as", [](Reader& in, DeviceView& v) { v.throttle_reasons = read_texts(in); }},
    {"ThrottleKnown", "b", [](Reader& in, DeviceView& v) { v.throttle_known = in.flag(); }},
    {"Readings", "a(sdssi)", [](Reader& in, DeviceView& v) { v.readings = read_readings(in); }},
    {"Clients", "a(utxtddb)", [](Reader& in, DeviceView& v) { v.clients = read_clients(in); }},
    {"Sampled", "t", [](Reader& in, DeviceView& v) { v.sampled = in.time(); }},
});

constexpr auto kConditionRows = std::to_array<Row<OpenCondition>>({
    {"Id", "s", [](Reader& in, OpenCondition& v) { v.condition.id = in.text(); }},
    {"Type", "s",
     [](Reader& in, OpenCondition& v) { v.type_known = assign(v.condition.type, condition_type_from(in.text())); }},
    {"Severity", "s",
     [](Reader& in, OpenCondition& v) { v.severity_known = assign(v.condition.severity, severity_from(in.text())); }},
    {"State", "s",
     [](Reader& in, OpenCondition& v) { v.state_known = assign(v.condition.state, condition_state_from(in.text())); }},
    {"Acknowledged", "b", [](Reader& in, OpenCondition& v) { v.condition.acknowledged = in.flag(); }},
    {"DeviceId", "s", [](Reader& in, OpenCondition& v) { v.condition.device = in.text(); }},
    {"DeviceLabel", "s", [](Reader& in, OpenCondition& v) { v.condition.device_label = in.text(); }},
    {"Detail", "s", [](Reader& in, OpenCondition& v) { v.condition.detail = in.text(); }},
    {"Evidence", "a(ss)", [](Reader& in, OpenCondition& v) { v.condition.evidence = read_evidence(in); }},
    {"Since", "t", [](Reader& in, OpenCondition& v) { v.condition.since = in.time(); }},
    {"LastSeen", "t", [](Reader& in, OpenCondition& v) { v.condition.last_seen = in.time(); }},
    {"BootId", "s", [](Reader& in, OpenCondition& v) { v.condition.boot_id = in.text(); }},
});

template <class View, std::size_t N>
void read_properties(Reader& in, View& view, const std::array<Row<View>, N>& rows) {
  if (!in.enter('a', "{sv}")) return;
  while (in.enter('e', "sv")) {
    const std::string name = in.text();
    const auto row = std::ranges::find(rows, name, &Row<View>::name);
    if (row == rows.end()) {
      in.skip("v");
    } else if (in.enter('v', row->type)) {
      row->read(in, view);
      in.leave();
    }
    in.leave();
  }
  in.leave();
}

void read_object(Reader& in, const std::string& path, ObjectViews& views) {
  if (!in.enter('a', "{sa{sv}}")) return;
  while (in.enter('e', "sa{sv}")) {
    const std::string interface = in.text();
    if (interface == kDeviceInterface) {
      DeviceView view;
      view.path = path;
      read_properties(in, view, kDeviceRows);
      views.devices.push_back(std::move(view));
    } else if (interface == kConditionInterface) {
      OpenCondition view;
      read_properties(in, view, kConditionRows);
      if (view.type_known && view.severity_known && view.state_known)
        views.conditions.push_back(std::move(view.condition));
    } else if (interface == kActionInterface) {
      ActionView view;
      read_properties(in, view, kActionRows);
      views.actions.push_back(std::move(view));
    } else {
      in.skip("a{sv}");
    }
    in.leave();
  }
  in.leave();
}

}  // namespace

ManagerView read_manager(Reader& in) {
  ManagerView view;
  read_properties(in, view, kManagerRows);
  return view;
}

ObjectViews read_objects(Reader& in) {
  ObjectViews views;
  if (!in.enter('a', "{oa{sa{sv}}}")) return views;
  while (in.enter('e', "oa{sa{sv}}")) {
    const std::string path = in.path();
    read_object(in, path, views);
    in.leave();
  }
  in.leave();
  std::ranges::sort(views.devices, {}, [](const DeviceView& d) { return std::tie(d.pci, d.id); });
  std::ranges::sort(views.actions, {}, [](const ActionView& a) { return std::tie(a.detected, a.id); });
  std::ranges::sort(views.conditions, [](const Condition& a, const Condition& b) {
    return std::tie(b.severity, a.since, a.id) < std::tie(a.severity, b.since, b.id);
  });
  return views;
}

}  // namespace gpuhealth::dbus
