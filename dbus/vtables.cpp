// SPDX-License-Identifier: Apache-2.0
#include "dbus/vtables.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "dbus/announce.hpp"
#include "dbus/calls.hpp"
#include "dbus/kernel_object.hpp"
#include "dbus/model.hpp"
#include "dbus/names.hpp"
#include "dbus/records.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

constexpr std::uint64_t kConst = SD_BUS_VTABLE_PROPERTY_CONST;
constexpr std::uint64_t kChanges = SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE;
constexpr std::uint64_t kPolled = 0;
// Without this flag sd-bus asks the bus for the caller's rights, and waits; polkit decides, not sd-bus.
constexpr std::uint64_t kOpen = SD_BUS_VTABLE_UNPRIVILEGED;

// sd-bus calls a plain function a property; Write says what it appends.
template <class Object, auto Write>
int get(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
        sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  Writer out(reply);
  Write(out, *static_cast<const Object*>(userdata));
  return out.error();
}
template <auto Write>
constexpr sd_bus_property_get_t manager = &get<Objects, Write>;
template <auto Write>
constexpr sd_bus_property_get_t device = &get<DeviceObject, Write>;
template <auto Write>
constexpr sd_bus_property_get_t condition = &get<ConditionObject, Write>;
template <auto Write>
constexpr sd_bus_property_get_t action = &get<ActionObject, Write>;

template <int (Calls::*Method)(sd_bus_message*)>
int call(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  return (static_cast<Objects*>(userdata)->calls.*Method)(message);
}

int acknowledge_this(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  // userdata is the condition that find() found; what find() itself was given hangs on the slot.
  auto* objects =
      static_cast<Objects*>(sd_bus_slot_get_userdata(sd_bus_get_current_slot(sd_bus_message_get_bus(message))));
  return objects->calls.acknowledge(message, static_cast<const ConditionObject*>(userdata)->condition.id);
}

std::string hex4(std::uint16_t value) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "0x%04x", value);
  return buffer;
}

void write_subsystem(Writer& out, const DeviceInfo& d) {
  const bool known = d.subsystem_vendor && d.subsystem_device;
  out.text(known ? hex4(*d.subsystem_vendor) + ":" + hex4(*d.subsystem_device) : "");
}

void write_dictionary(Writer& out, const std::map<std::string, std::string>& pairs) {
  out.begin('a', "{ss}");
  for (const auto& [key, value] : pairs) out.begin('e', "ss").text(key).text(value).end();
  out.end();
}

void write_partitions(Writer& out, const DeviceInfo& d) {
  out.begin('r', "ss").text(d.compute_partition).text(d.memory_partition).end();
}

void write_peers(Writer& out, const DeviceInfo& d) {
  out.begin('a', "s");
  for (const auto& peer : d.xgmi_peers) out.text(to_string(peer));
  out.end();
}

void write_throttle(Writer& out, const DeviceObject& d) {
  out.begin('a', "s");
  for (const auto& row : all_throttle_reasons()) {
    if (d.sample && d.sample->throttle.contains(row.reason)) out.text(row.name);
  }
  out.end();
}

// What a device shows before its first sample.
const Sample& sample_of(const DeviceObject& d) {
  static const Sample none;
  return d.sample ? *d.sample : none;
}

const sd_bus_vtable kManagerTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("GetHistory",
                            SD_BUS_ARGS("s", device, "s", reading, "t", since, "t", until, "u", max_points),
                            SD_BUS_RESULT("a(tddd)", points), call<&Calls::history>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("GetEvents", SD_BUS_ARGS("t", since, "t", until, "u", limit),
                            SD_BUS_RESULT("a(tsssss)", events), call<&Calls::events>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("GetPastConditions", SD_BUS_ARGS("t", since, "u", limit),
                            SD_BUS_RESULT("a(ssssbsstttssa(ss))", conditions), call<&Calls::past_conditions>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("AcknowledgeCondition", SD_BUS_ARGS("s", id), SD_BUS_NO_RESULT, call<&Calls::acknowledge>,
                            kOpen),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<&Calls::reload>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("ReloadPolicy", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<&Calls::reload_policy>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("ResetBreaker", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<&Calls::reset_breaker>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("ConfirmAction", SD_BUS_ARGS("s", id), SD_BUS_NO_RESULT, call<&Calls::confirm_action>,
                            kOpen),
    SD_BUS_METHOD_WITH_ARGS("RevertAction", SD_BUS_ARGS("s", id), SD_BUS_NO_RESULT, call<&Calls::revert_action>, kOpen),
    SD_BUS_SIGNAL_WITH_ARGS("ConditionChanged",
                            SD_BUS_ARGS("s", id, "s", type, "s", severity, "s", state, "s", device, "b", acknowledged),
                            0),
    SD_BUS_SIGNAL_WITH_ARGS("EventHappened", SD_BUS_ARGS("t", time, "s", type, "s", severity, "s", device, "s", text),
                            0),
    SD_BUS_PROPERTY("Version", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.version); }>), 0, kConst),
    SD_BUS_PROPERTY("BootId", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.boot_id); }>), 0, kConst),
    SD_BUS_PROPERTY("KernelRelease", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.kernel_release); }>),
                    0, kConst),
    SD_BUS_PROPERTY("AmdgpuVersion", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.amdgpu.version); }>),
                    0, kPolled),
    SD_BUS_PROPERTY("AmdgpuSrcversion", "s",
                    (manager<[](auto& w, auto& o) { w.text(o.model.manager.amdgpu.srcversion); }>), 0, kPolled),
    SD_BUS_PROPERTY("AmdgpuParameters", "a{ss}",
                    (manager<[](auto& w, auto& o) { write_dictionary(w, o.model.manager.amdgpu.parameters); }>), 0,
                    kPolled),
    SD_BUS_PROPERTY("Started", "t", (manager<[](auto& w, auto& o) { w.time(o.model.manager.started); }>), 0, kConst),
    SD_BUS_PROPERTY("Samples", "t", (manager<[](auto& w, auto& o) { w.u64(o.model.manager.samples); }>), 0, kPolled),
    SD_BUS_PROPERTY("PolicyMode", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.policy_mode); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("SafeMode", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.safe_mode); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("PolicyProblem", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.policy_problem); }>),
                    0, kChanges),
    SD_BUS_PROPERTY("BreakerOpen", "b", (manager<[](auto& w, auto& o) { w.flag(o.model.manager.breaker_open); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("PolicyFiles", "as", (manager<[](auto& w, auto& o) { write(w, o.model.manager.policy_files); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("StoreProblem", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.store_problem); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("ConfigProblem", "s", (manager<[](auto& w, auto& o) { w.text(o.model.manager.config_problem); }>),
                    0, kChanges),
    SD_BUS_PROPERTY("Health", "s", (manager<[](auto& w, auto& o) { w.text(o.model.health); }>), 0, kChanges),
    SD_BUS_VTABLE_END};

const sd_bus_vtable kDeviceTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Id", "s", (device<[](auto& w, auto& d) { w.text(d.id); }>), 0, kConst),
    SD_BUS_PROPERTY("Pci", "s", (device<[](auto& w, auto& d) { w.text(to_string(d.info.pci)); }>), 0, kConst),
    SD_BUS_PROPERTY("Name", "s", (device<[](auto& w, auto& d) { w.text(d.info.name); }>), 0, kConst),
    SD_BUS_PROPERTY("OtherNames", "as", (device<[](auto& w, auto& d) { write(w, d.info.other_names); }>), 0, kConst),
    SD_BUS_PROPERTY("VendorId", "s", (device<[](auto& w, auto& d) { w.text(hex4(d.info.vendor_id)); }>), 0, kConst),
    SD_BUS_PROPERTY("DeviceId", "s", (device<[](auto& w, auto& d) { w.text(hex4(d.info.device_id)); }>), 0, kConst),
    SD_BUS_PROPERTY("SubsystemId", "s", (device<[](auto& w, auto& d) { write_subsystem(w, d.info); }>), 0, kConst),
    SD_BUS_PROPERTY("Driver", "s", (device<[](auto& w, auto& d) { w.text(d.info.driver); }>), 0, kConst),
    SD_BUS_PROPERTY("UniqueId", "s", (device<[](auto& w, auto& d) { w.text(d.info.unique_id); }>), 0, kConst),
    SD_BUS_PROPERTY("VbiosVersion", "s", (device<[](auto& w, auto& d) { w.text(d.info.vbios_version); }>), 0, kConst),
    SD_BUS_PROPERTY("Family", "s", (device<[](auto& w, auto& d) { w.text(to_string(d.info.family)); }>), 0, kConst),
    SD_BUS_PROPERTY("Gfx", "s", (device<[](auto& w, auto& d) { w.text(d.info.gfx); }>), 0, kConst),
    SD_BUS_PROPERTY("ComputeNodes", "a(utusiu)", (device<[](auto& w, auto& d) { write(w, d.info.compute_nodes); }>), 0,
                    kConst),
    SD_BUS_PROPERTY("Partitions", "(ss)", (device<[](auto& w, auto& d) { write_partitions(w, d.info); }>), 0, kConst),
    SD_BUS_PROPERTY("XgmiPeers", "as", (device<[](auto& w, auto& d) { write_peers(w, d.info); }>), 0, kConst),
    SD_BUS_PROPERTY("Firmware", "a{ss}", (device<[](auto& w, auto& d) { write_dictionary(w, d.info.firmware); }>), 0,
                    kConst),
    SD_BUS_PROPERTY("RuntimeStatus", "s", (device<[](auto& w, auto& d) { w.text(to_string(sample_of(d).power)); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("Health", "s", (device<[](auto& w, auto& d) { w.text(d.health); }>), 0, kChanges),
    SD_BUS_PROPERTY("PerformanceLevel", "s", (device<[](auto& w, auto& d) { w.text(sample_of(d).performance_level); }>),
                    0, kChanges),
    SD_BUS_PROPERTY("PowerProfile", "s", (device<[](auto& w, auto& d) { w.text(sample_of(d).power_profile); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("ThrottleReasons", "as", (device<[](auto& w, auto& d) { write_throttle(w, d); }>), 0, kChanges),
    SD_BUS_PROPERTY("ThrottleKnown", "b", (device<[](auto& w, auto& d) { w.flag(sample_of(d).throttle_known); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("Readings", "a(sdssi)", (device<[](auto& w, auto& d) { write(w, sample_of(d).readings); }>), 0,
                    kPolled),
    SD_BUS_PROPERTY("Clients", "a(utxtddb)", (device<[](auto& w, auto& d) { write(w, d.clients); }>), 0, kPolled),
    SD_BUS_PROPERTY("Sampled", "t", (device<[](auto& w, auto& d) { w.time(sample_of(d).time.wall); }>), 0, kPolled),
    SD_BUS_VTABLE_END};

const sd_bus_vtable kConditionTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Acknowledge", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, acknowledge_this, kOpen),
    SD_BUS_PROPERTY("Id", "s", (condition<[](auto& w, auto& o) { w.text(o.condition.id); }>), 0, kConst),
    SD_BUS_PROPERTY("Type", "s", (condition<[](auto& w, auto& o) { w.text(info(o.condition.type).name); }>), 0, kConst),
    SD_BUS_PROPERTY("Severity", "s", (condition<[](auto& w, auto& o) { w.text(to_string(o.condition.severity)); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("State", "s", (condition<[](auto& w, auto& o) { w.text(to_string(o.condition.state)); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("Acknowledged", "b", (condition<[](auto& w, auto& o) { w.flag(o.condition.acknowledged); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("Device", "o", (condition<[](auto& w, auto& o) { w.path(o.device_path); }>), 0, kConst),
    SD_BUS_PROPERTY("DeviceId", "s", (condition<[](auto& w, auto& o) { w.text(o.condition.device); }>), 0, kConst),
    SD_BUS_PROPERTY("DeviceLabel", "s", (condition<[](auto& w, auto& o) { w.text(o.condition.device_label); }>), 0,
                    kChanges),
    SD_BUS_PROPERTY("Title", "s", (condition<[](auto& w, auto& o) { w.text(info(o.condition.type).title); }>), 0,
                    kConst),
    SD_BUS_PROPERTY("Meaning", "s", (condition<[](auto& w, auto& o) { w.text(info(o.condition.type).meaning); }>), 0,
                    kConst),
    SD_BUS_PROPERTY("Advice", "s", (condition<[](auto& w, auto& o) { w.text(info(o.condition.type).advice); }>), 0,
                    kConst),
    SD_BUS_PROPERTY("Detail", "s", (condition<[](auto& w, auto& o) { w.text(o.condition.detail); }>), 0, kPolled),
    SD_BUS_PROPERTY("Evidence", "a(ss)", (condition<[](auto& w, auto& o) { write(w, o.condition.evidence); }>), 0,
                    kPolled),
    SD_BUS_PROPERTY("Since", "t", (condition<[](auto& w, auto& o) { w.time(o.condition.since); }>), 0, kConst),
    SD_BUS_PROPERTY("LastSeen", "t", (condition<[](auto& w, auto& o) { w.time(o.condition.last_seen); }>), 0, kPolled),
    SD_BUS_PROPERTY("BootId", "s", (condition<[](auto& w, auto& o) { w.text(o.condition.boot_id); }>), 0, kConst),
    SD_BUS_VTABLE_END};

const sd_bus_vtable kActionTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Id", "s", (action<[](auto& w, auto& o) { w.text(o.action.id); }>), 0, kConst),
    SD_BUS_PROPERTY("Kind", "s", (action<[](auto& w, auto& o) { w.text(o.action.kind); }>), 0, kConst),
    SD_BUS_PROPERTY("Device", "s", (action<[](auto& w, auto& o) { w.text(o.action.device); }>), 0, kConst),
    SD_BUS_PROPERTY("DeviceLabel", "s", (action<[](auto& w, auto& o) { w.text(o.action.device_label); }>), 0, kChanges),
    SD_BUS_PROPERTY("State", "s", (action<[](auto& w, auto& o) { w.text(o.action.state); }>), 0, kChanges),
    SD_BUS_PROPERTY("Policy", "s", (action<[](auto& w, auto& o) { w.text(o.action.policy); }>), 0, kConst),
    SD_BUS_PROPERTY("Rule", "s", (action<[](auto& w, auto& o) { w.text(o.action.rule); }>), 0, kConst),
    SD_BUS_PROPERTY("Reason", "s", (action<[](auto& w, auto& o) { w.text(o.action.reason); }>), 0, kChanges),
    SD_BUS_PROPERTY("Text", "s", (action<[](auto& w, auto& o) { w.text(o.action.text); }>), 0, kChanges),
    SD_BUS_PROPERTY("Before", "s", (action<[](auto& w, auto& o) { w.text(o.action.before); }>), 0, kChanges),
    SD_BUS_PROPERTY("Wanted", "s", (action<[](auto& w, auto& o) { w.text(o.action.wanted); }>), 0, kChanges),
    SD_BUS_PROPERTY("After", "s", (action<[](auto& w, auto& o) { w.text(o.action.after); }>), 0, kChanges),
    SD_BUS_PROPERTY("Fault", "t", (action<[](auto& w, auto& o) { w.time(o.action.fault); }>), 0, kChanges),
    SD_BUS_PROPERTY("Detected", "t", (action<[](auto& w, auto& o) { w.time(o.action.detected); }>), 0, kChanges),
    SD_BUS_PROPERTY("Acted", "t", (action<[](auto& w, auto& o) { w.time(o.action.acted); }>), 0, kChanges),
    SD_BUS_PROPERTY("Verified", "t", (action<[](auto& w, auto& o) { w.time(o.action.verified); }>), 0, kChanges),
    SD_BUS_PROPERTY("ConfirmBy", "t", (action<[](auto& w, auto& o) { w.time(o.action.confirm_by); }>), 0, kChanges),
    SD_BUS_PROPERTY("Reversible", "b", (action<[](auto& w, auto& o) { w.flag(o.action.reversible); }>), 0, kConst),
    SD_BUS_VTABLE_END};

// One fallback table serves all objects below a prefix; the two functions say which ones there are.
template <auto Map>
int find(sd_bus* /*bus*/, const char* path, const char* /*interface*/, void* userdata, void** found,
         sd_bus_error* /*error*/) noexcept {
  auto& map = static_cast<Objects*>(userdata)->model.*Map;
  const auto it = map.find(path);
  if (it == map.end()) return 0;
  *found = &it->second;
  return 1;
}

template <auto Map>
int enumerate(sd_bus* /*bus*/, const char* /*prefix*/, void* userdata, char*** nodes,
              sd_bus_error* /*error*/) noexcept {
  const auto& map = static_cast<Objects*>(userdata)->model.*Map;
  auto** list = static_cast<char**>(std::calloc(map.size() + 1, sizeof(char*)));  // sd-bus frees it
  if (list == nullptr) return -ENOMEM;
  std::size_t i = 0;
  for (const auto& [path, object] : map) list[i++] = strdup(path.c_str());
  *nodes = list;
  return 0;
}

// While the bus does not take our answers, more questions must not make more of them.
int drop_when_full(sd_bus_message* message, void* /*userdata*/, sd_bus_error* /*error*/) noexcept {
  const bool is_call = sd_bus_message_is_method_call(message, nullptr, nullptr) > 0;
  return is_call && queued_messages(sd_bus_message_get_bus(message)) >= kMaxQueuedMessages ? 1 : 0;
}

}  // namespace

std::vector<SlotPtr> add_objects(sd_bus* bus, Objects& objects) {
  std::vector<SlotPtr> slots;
  bool good = true;
  const auto keep = [&](int r, sd_bus_slot* slot) {
    good = good && r >= 0;
    slots.emplace_back(slot);
  };
  sd_bus_slot* slot = nullptr;
  int r = sd_bus_add_filter(bus, &slot, &drop_when_full, nullptr);
  keep(r, slot);
  r = sd_bus_add_object_manager(bus, &slot, kRootPath);
  keep(r, slot);
  r = sd_bus_add_object_vtable(bus, &slot, kRootPath, kManagerInterface, kManagerTable, &objects);
  keep(r, slot);
  r = sd_bus_add_object_vtable(bus, &slot, kKernelPath, kKernelInterface, kKernelTable, &objects);
  keep(r, slot);
  r = sd_bus_add_fallback_vtable(bus, &slot, kDevicePrefix, kDeviceInterface, kDeviceTable, &find<&Model::devices>,
                                 &objects);
  keep(r, slot);
  r = sd_bus_add_node_enumerator(bus, &slot, kDevicePrefix, &enumerate<&Model::devices>, &objects);
  keep(r, slot);
  r = sd_bus_add_fallback_vtable(bus, &slot, kConditionPrefix, kConditionInterface, kConditionTable,
                                 &find<&Model::conditions>, &objects);
  keep(r, slot);
  r = sd_bus_add_node_enumerator(bus, &slot, kConditionPrefix, &enumerate<&Model::conditions>, &objects);
  keep(r, slot);
  r = sd_bus_add_fallback_vtable(bus, &slot, kActionPrefix, kActionInterface, kActionTable, &find<&Model::actions>,
                                 &objects);
  keep(r, slot);
  r = sd_bus_add_node_enumerator(bus, &slot, kActionPrefix, &enumerate<&Model::actions>, &objects);
  keep(r, slot);
  r = sd_bus_add_object_vtable(bus, &slot, kCanaryPath, kCanaryInterface, kCanaryTable, &objects);
  keep(r, slot);
  r = sd_bus_add_fallback_vtable(bus, &slot, kJobPrefix, kJobInterface, kJobTable, &find<&Model::jobs>, &objects);
  keep(r, slot);
  r = sd_bus_add_node_enumerator(bus, &slot, kJobPrefix, &enumerate<&Model::jobs>, &objects);
  keep(r, slot);
  if (!good) slots.clear();
  return slots;
}

}  // namespace gpuhealth::dbus
