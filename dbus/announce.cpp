// SPDX-License-Identifier: Apache-2.0
#include "dbus/announce.hpp"

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "dbus/model.hpp"
#include "dbus/names.hpp"
#include "dbus/sd.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

bool room(sd_bus* bus) {
  return queued_messages(bus) < kMaxQueuedMessages;
}

template <std::size_t N>
void properties_changed(sd_bus* bus, const char* path, const char* interface, std::bitset<N>& changed,
                        const char* const (&names)[N]) {
  std::vector<char*> list;
  for (std::size_t i = 0; i < N; ++i) {
    if (changed[i]) list.push_back(const_cast<char*>(names[i]));
  }
  changed.reset();
  if (list.empty()) return;
  list.push_back(nullptr);
  sd_bus_emit_properties_changed_strv(bus, path, interface, list.data());
}

void interfaces_removed(sd_bus* bus, const std::string& path, const char* interface) {
  // The same that sd-bus lists for an object when it is added.
  const char* const names[] = {"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable",
                               "org.freedesktop.DBus.Properties", interface, nullptr};
  sd_bus_emit_interfaces_removed_strv(bus, path.c_str(), const_cast<char**>(names));
}

void condition_changed(sd_bus* bus, const Condition& c) {
  sd_bus_message* raw = nullptr;
  if (sd_bus_message_new_signal(bus, &raw, kRootPath, kManagerInterface, "ConditionChanged") < 0) return;
  const MessagePtr message(raw);
  Writer out(raw);
  out.text(c.id).text(info(c.type).name).text(to_string(c.severity)).text(to_string(c.state)).text(c.device);
  out.flag(c.acknowledged);
  if (out.error() >= 0) sd_bus_send(bus, raw, nullptr);
}

bool tell_events(sd_bus* bus, Model& model) {
  std::size_t told = 0;
  for (const auto& event : model.events) {
    if (!room(bus)) break;
    ++told;
    sd_bus_message* raw = nullptr;
    if (sd_bus_message_new_signal(bus, &raw, kRootPath, kManagerInterface, "EventHappened") < 0) continue;
    const MessagePtr message(raw);
    Writer out(raw);
    out.time(event.time).text(event.type).text(to_string(event.severity)).text(event.device).text(event.text);
    if (out.error() >= 0) sd_bus_send(bus, raw, nullptr);
  }
  model.events.erase(model.events.begin(), model.events.begin() + static_cast<std::ptrdiff_t>(told));
  return model.events.empty();
}

bool tell_removals(sd_bus* bus, Model& model) {
  std::size_t told = 0;
  for (const auto& removal : model.removals) {
    if (!room(bus)) break;
    interfaces_removed(bus, removal.path, removal.interface);
    if (removal.condition) condition_changed(bus, *removal.condition);
    ++told;
  }
  model.removals.erase(model.removals.begin(), model.removals.begin() + static_cast<std::ptrdiff_t>(told));
  return model.removals.empty();
}

bool more_to_tell(const ConditionObject& object) {
  return object.life_changed;
}
template <class Object>
bool more_to_tell(const Object& /*object*/) {
  return false;
}

// New objects and changed properties; `also` tells what else there is to tell of one. False: the queue is full.
template <class Objects, std::size_t N, class Also>
bool tell(sd_bus* bus, Objects& objects, const char* interface, const char* const (&names)[N], Also also) {
  for (auto& [path, object] : objects) {
    if (object.announced && object.changed.none() && !more_to_tell(object)) continue;
    if (!room(bus)) return false;
    if (!object.announced) {
      sd_bus_emit_object_added(bus, path.c_str());
      object.changed.reset();
    }
    object.announced = true;
    properties_changed(bus, path.c_str(), interface, object.changed, names);
    also(object);
  }
  return true;
}

bool tell_conditions(sd_bus* bus, Model& model) {
  return tell(bus, model.conditions, kConditionInterface, condition_property::kNames, [&](auto& object) {
    if (object.life_changed) condition_changed(bus, object.condition);
    object.life_changed = false;
  });
}

// Results before the end that they come before.
bool tell_jobs(sd_bus* bus, Model& model) {
  for (auto& [path, object] : model.jobs) {
    if (object.announced && !tell_results(bus, path, object, room)) return false;
  }
  return tell(bus, model.jobs, kJobInterface, job_property::kNames,
              [&](JobObject& object) { tell_results(bus, job_path(object.job.id), object, room); });
}

}  // namespace

std::size_t queued_messages(sd_bus* bus) {
  std::uint64_t count = 0;
  return sd_bus_get_n_queued_write(bus, &count) < 0 ? 0 : static_cast<std::size_t>(count);
}

bool announce(sd_bus* bus, Model& model) {
  if (!model.anything_to_tell() || !room(bus)) return false;
  if (!tell_removals(bus, model) ||
      !tell(bus, model.devices, kDeviceInterface, device_property::kNames, [](auto&) {}) ||
      !tell_conditions(bus, model) ||
      !tell(bus, model.actions, kActionInterface, action_property::kNames, [](auto&) {}) || !tell_jobs(bus, model) ||
      !tell_events(bus, model))
    return true;
  if (model.manager_changed.any()) {
    if (!room(bus)) return true;
    properties_changed(bus, kRootPath, kManagerInterface, model.manager_changed, manager_property::kNames);
  }
  if (model.kernel_changed.any()) {
    if (!room(bus)) return true;
    properties_changed(bus, kKernelPath, kKernelInterface, model.kernel_changed, kernel_property::kNames);
  }
  model.to_tell = false;
  return true;
}

}  // namespace gpuhealth::dbus
