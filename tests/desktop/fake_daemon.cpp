// SPDX-License-Identifier: Apache-2.0
// usage: test_fake_daemon ADDRESS
// org.gpuhealth1 as a daemon of any version has it, told by test.Control what to show: conditions, actions, a kernel.
// Calls that would change something are written down instead.
#include <systemd/sd-bus.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using Fields = std::map<std::string, std::string>;

struct Object {
  std::string path;
  Fields text;
  std::map<std::string, bool> flags;
  std::map<std::string, std::uint64_t> times;
  sd_bus_slot* slot = nullptr;
};

std::map<std::string, std::unique_ptr<Object>> objects;  // by path
std::vector<std::string> calls;
std::string refusal;  // every request is answered with this error, unless empty
Fields policy = {{"PolicyMode", "observe"}, {"PolicyProblem", ""}, {"SafeMode", ""}};

constexpr const char* kCardPath = "/org/gpuhealth1/device/card";

int get_text(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply, void* object,
             sd_bus_error*) {
  return sd_bus_message_append(reply, "s", static_cast<Object*>(object)->text[property].c_str());
}
int get_flag(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply, void* object,
             sd_bus_error*) {
  return sd_bus_message_append(reply, "b", static_cast<int>(static_cast<Object*>(object)->flags[property]));
}
int get_time(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply, void* object,
             sd_bus_error*) {
  return sd_bus_message_append(reply, "t", static_cast<Object*>(object)->times[property]);
}
int get_card(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
  return sd_bus_message_append(reply, "o", kCardPath);
}
int get_evidence(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
  return sd_bus_message_append(reply, "a(ss)", 1, "temperature.junction", "112 C");
}
int get_readings(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*, sd_bus_error*) {
  return sd_bus_message_append(reply, "a(sdssi)", 4, "temperature.edge", 45.0, "C", "valid", 0, "fan.rpm", 0.0, "rpm",
                               "valid", 0, "power.average", 0.0, "W", "unreadable", 16, "ras.umc.correctable", 7.0,
                               "count", "valid", 0);
}
int get_list(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* object, sd_bus_error*) {
  const auto& advisory = static_cast<Object*>(object)->text["Advisories"];
  return advisory.empty() ? sd_bus_message_append(reply, "as", 0)
                          : sd_bus_message_append(reply, "as", 1, advisory.c_str());
}
int get_policy(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply, void*, sd_bus_error*) {
  return sd_bus_message_append(reply, "s", policy[property].c_str());
}
int get_constant(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply, void*, sd_bus_error*) {
  static const Fields values = {{"Version", "0.2.0"}, {"KernelRelease", "7.0.12"}, {"Health", "ok"}, {"BootId", "b"}};
  const auto it = values.find(property);
  return sd_bus_message_append(reply, "s", it == values.end() ? "" : it->second.c_str());
}

// A request: written down with its arguments, and answered.
int note(sd_bus_message* m, void*, sd_bus_error* error) {
  std::string line = sd_bus_message_get_member(m);
  const char* types = sd_bus_message_get_signature(m, 1);
  for (; *types != '\0'; ++types) {
    const char* word = "";
    if (sd_bus_message_read_basic(m, *types, static_cast<void*>(&word)) < 0) return -EINVAL;
    line += " " + std::string(word);
  }
  calls.push_back(line);
  if (!refusal.empty()) return sd_bus_error_set(error, refusal.c_str(), "no");
  return sd_bus_reply_method_return(m, "");
}

#define TEXT(name) SD_BUS_PROPERTY(name, "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)
#define FLAG(name) SD_BUS_PROPERTY(name, "b", get_flag, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)
#define TIME(name) SD_BUS_PROPERTY(name, "t", get_time, 0, 0)
#define REQUEST(name, in) SD_BUS_METHOD(name, in, "", note, SD_BUS_VTABLE_UNPRIVILEGED)
#define CONSTANT(name) SD_BUS_PROPERTY(name, "s", get_constant, 0, SD_BUS_VTABLE_PROPERTY_CONST)
#define POLICY(name) SD_BUS_PROPERTY(name, "s", get_policy, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)

const sd_bus_vtable kManager[] = {SD_BUS_VTABLE_START(0),
                                  CONSTANT("Version"),
                                  CONSTANT("KernelRelease"),
                                  CONSTANT("Health"),
                                  CONSTANT("BootId"),
                                  POLICY("PolicyMode"),
                                  POLICY("PolicyProblem"),
                                  POLICY("SafeMode"),
                                  REQUEST("ConfirmAction", "s"),
                                  REQUEST("RevertAction", "s"),
                                  REQUEST("AcknowledgeCondition", "s"),
                                  SD_BUS_VTABLE_END};
const sd_bus_vtable kDevice[] = {SD_BUS_VTABLE_START(0),
                                 TEXT("Id"),
                                 TEXT("Pci"),
                                 TEXT("Name"),
                                 TEXT("Health"),
                                 TEXT("RuntimeStatus"),
                                 TIME("Sampled"),
                                 SD_BUS_PROPERTY("Readings", "a(sdssi)", get_readings, 0, 0),
                                 SD_BUS_VTABLE_END};
const sd_bus_vtable kCondition[] = {SD_BUS_VTABLE_START(0),
                                    TEXT("Id"),
                                    TEXT("Type"),
                                    TEXT("Severity"),
                                    TEXT("State"),
                                    TEXT("DeviceId"),
                                    TEXT("DeviceLabel"),
                                    TEXT("Detail"),
                                    FLAG("Acknowledged"),
                                    TIME("Since"),
                                    SD_BUS_PROPERTY("Device", "o", get_card, 0, 0),
                                    SD_BUS_PROPERTY("Evidence", "a(ss)", get_evidence, 0, 0),
                                    SD_BUS_VTABLE_END};
const sd_bus_vtable kAction[] = {SD_BUS_VTABLE_START(0), TEXT("Id"),       TEXT("Kind"),   TEXT("Device"),
                                 TEXT("DeviceLabel"),    TEXT("State"),    TEXT("Reason"), TEXT("Text"),
                                 TEXT("Before"),         TEXT("Wanted"),   TEXT("After"),  FLAG("Reversible"),
                                 TIME("Acted"),          SD_BUS_VTABLE_END};
const sd_bus_vtable kKernel[] = {
    SD_BUS_VTABLE_START(0), TEXT("Running"),      TEXT("Next"),
    TEXT("LastKnownGood"),  TEXT("Pinned"),       TEXT("Trial"),
    TEXT("State"),          FLAG("Hold"),         SD_BUS_PROPERTY("Advisories", "as", get_list, 0, 0),
    REQUEST("Trial", "s"),  REQUEST("Unpin", ""), SD_BUS_VTABLE_END};

struct Kind {
  const char* interface;
  const sd_bus_vtable* vtable;
};
const std::map<std::string, Kind> kKinds = {{"device", {"org.gpuhealth1.Device", kDevice}},
                                            {"condition", {"org.gpuhealth1.Condition", kCondition}},
                                            {"action", {"org.gpuhealth1.Action", kAction}},
                                            {"kernel", {"org.gpuhealth1.Kernel", kKernel}}};

std::string path_of(const std::string& kind, const std::string& name) {
  return kind == "kernel" ? "/org/gpuhealth1/kernel" : "/org/gpuhealth1/" + kind + "/" + name;
}

// Set(kind, name, a{ss}): "true" and "false" become flags, digits of Since, Acted and Sampled times.
int set(sd_bus_message* m, void* userdata, sd_bus_error*) {
  auto* bus = static_cast<sd_bus*>(userdata);
  const char* kind = nullptr;
  const char* name = nullptr;
  if (sd_bus_message_read(m, "ss", &kind, &name) < 0) return -EINVAL;
  const auto found = kKinds.find(kind);
  if (found == kKinds.end()) return -EINVAL;
  const std::string path = path_of(kind, name);
  auto& object = objects[path];
  const bool fresh = !object;
  if (fresh) object = std::make_unique<Object>();
  object->path = path;
  std::vector<std::string> changed;
  sd_bus_message_enter_container(m, 'a', "{ss}");
  const char* key = nullptr;
  const char* value = nullptr;
  while (sd_bus_message_read(m, "{ss}", &key, &value) > 0) {
    const std::string text = value;
    if (text == "true" || text == "false")
      object->flags[key] = text == "true";
    else if (std::string(key) == "Since" || std::string(key) == "Sampled" || std::string(key) == "Acted")
      object->times[key] = std::stoull(text);
    else
      object->text[key] = text;
    changed.emplace_back(key);
  }
  if (fresh) {
    sd_bus_add_object_vtable(bus, &object->slot, path.c_str(), found->second.interface, found->second.vtable,
                             object.get());
    sd_bus_emit_object_added(bus, path.c_str());
  } else {
    for (const auto& property : changed)
      sd_bus_emit_properties_changed(bus, path.c_str(), found->second.interface, property.c_str(), nullptr);
  }
  return sd_bus_reply_method_return(m, "");
}

int remove_object(sd_bus_message* m, void* userdata, sd_bus_error*) {
  const char* kind = nullptr;
  const char* name = nullptr;
  if (sd_bus_message_read(m, "ss", &kind, &name) < 0) return -EINVAL;
  const auto it = objects.find(path_of(kind, name));
  if (it == objects.end()) return -ENOENT;
  sd_bus_emit_object_removed(static_cast<sd_bus*>(userdata), it->first.c_str());
  sd_bus_slot_unref(it->second->slot);
  objects.erase(it);
  return sd_bus_reply_method_return(m, "");
}

int refuse(sd_bus_message* m, void*, sd_bus_error*) {
  const char* name = nullptr;
  if (sd_bus_message_read(m, "s", &name) < 0) return -EINVAL;
  refusal = name;
  return sd_bus_reply_method_return(m, "");
}

int set_policy(sd_bus_message* m, void* userdata, sd_bus_error*) {
  const char* name = nullptr;
  const char* value = nullptr;
  if (sd_bus_message_read(m, "ss", &name, &value) < 0) return -EINVAL;
  policy[name] = value;
  sd_bus_emit_properties_changed(static_cast<sd_bus*>(userdata), "/org/gpuhealth1", "org.gpuhealth1.Manager", name,
                                 nullptr);
  return sd_bus_reply_method_return(m, "");
}

int tell_calls(sd_bus_message* m, void*, sd_bus_error*) {
  sd_bus_message* reply = nullptr;
  if (sd_bus_message_new_method_return(m, &reply) < 0) return -ENOMEM;
  sd_bus_message_open_container(reply, 'a', "s");
  for (const auto& call : calls) sd_bus_message_append(reply, "s", call.c_str());
  sd_bus_message_close_container(reply);
  const int r = sd_bus_send(nullptr, reply, nullptr);
  sd_bus_message_unref(reply);
  return r;
}

const sd_bus_vtable kControl[] = {SD_BUS_VTABLE_START(0),
                                  SD_BUS_METHOD("Set", "ssa{ss}", "", set, SD_BUS_VTABLE_UNPRIVILEGED),
                                  SD_BUS_METHOD("Remove", "ss", "", remove_object, SD_BUS_VTABLE_UNPRIVILEGED),
                                  SD_BUS_METHOD("Refuse", "s", "", refuse, SD_BUS_VTABLE_UNPRIVILEGED),
                                  SD_BUS_METHOD("SetPolicy", "ss", "", set_policy, SD_BUS_VTABLE_UNPRIVILEGED),
                                  SD_BUS_METHOD("Calls", "", "as", tell_calls, SD_BUS_VTABLE_UNPRIVILEGED),
                                  SD_BUS_VTABLE_END};

}  // namespace

int main(int argc, char** argv) {
  sd_bus* bus = nullptr;
  if (argc != 2 || sd_bus_new(&bus) < 0) return 2;
  if (sd_bus_set_address(bus, argv[1]) < 0 || sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0) return 1;
  sd_bus_add_object_manager(bus, nullptr, "/org/gpuhealth1");
  sd_bus_add_object_vtable(bus, nullptr, "/org/gpuhealth1", "org.gpuhealth1.Manager", kManager, nullptr);
  sd_bus_add_object_vtable(bus, nullptr, "/control", "test.Control", kControl, bus);
  if (sd_bus_request_name(bus, "org.gpuhealth1", 0) < 0) return 1;
  while (true) {
    const int r = sd_bus_process(bus, nullptr);
    if (r < 0) return 0;  // the bus went
    if (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0) return 0;
  }
}
