// SPDX-License-Identifier: Apache-2.0
// What the daemon has pushed, and what of it the bus has not been told yet. Without a bus, or with one that does not
// read, changes pile up here as marks, never as messages: the last state is told, and memory is bounded by the number
// of objects.
#pragma once

#include <bitset>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/event.hpp"
#include "core/sample.hpp"
#include "dbus/job_object.hpp"
#include "dbus/kernel_object.hpp"
#include "dbus/server.hpp"

namespace gpuhealth::dbus {

// Properties that are announced, with their names in the same order.
namespace manager_property {
enum : std::size_t {
  StoreProblem,
  ConfigProblem,
  Health,
  PolicyMode,
  SafeMode,
  PolicyProblem,
  BreakerOpen,
  PolicyFiles,
  Count
};
inline constexpr const char* const kNames[Count] = {"StoreProblem", "ConfigProblem", "Health",      "PolicyMode",
                                                    "SafeMode",     "PolicyProblem", "BreakerOpen", "PolicyFiles"};
}  // namespace manager_property
namespace device_property {
enum : std::size_t { RuntimeStatus, Health, PerformanceLevel, PowerProfile, ThrottleReasons, ThrottleKnown, Count };
inline constexpr const char* const kNames[Count] = {"RuntimeStatus", "Health",          "PerformanceLevel",
                                                    "PowerProfile",  "ThrottleReasons", "ThrottleKnown"};
}  // namespace device_property
namespace condition_property {
enum : std::size_t { Severity, State, Acknowledged, DeviceLabel, Count };
inline constexpr const char* const kNames[Count] = {"Severity", "State", "Acknowledged", "DeviceLabel"};
}  // namespace condition_property

namespace action_property {
enum : std::size_t {
  DeviceLabel,
  State,
  Reason,
  Text,
  Before,
  Wanted,
  After,
  Fault,
  Detected,
  Acted,
  Verified,
  ConfirmBy,
  Count
};
inline constexpr const char* const kNames[Count] = {"DeviceLabel", "State",  "Reason",   "Text",
                                                    "Before",      "Wanted", "After",    "Fault",
                                                    "Detected",    "Acted",  "Verified", "ConfirmBy"};
}  // namespace action_property

struct DeviceObject {
  DeviceInfo info;
  std::string id;  // info.id()
  std::optional<Sample> sample;
  std::vector<GpuClient> clients;
  std::string health = "unknown";
  bool announced = false;
  std::bitset<device_property::Count> changed;
};

struct ConditionObject {
  Condition condition;
  std::string device_path;
  bool announced = false;
  bool life_changed = false;  // ConditionChanged is due
  std::bitset<condition_property::Count> changed;
};

struct ActionObject {
  ActionView action;
  bool announced = false;
  std::bitset<action_property::Count> changed;
};

// An object that the bus still believes in.
struct Removal {
  std::string path;
  std::optional<Condition> condition;  // set: a condition was cleared
  const char* interface = nullptr;     // of what else is gone
};

class Model {
 public:
  void set_manager(const ManagerState& state);
  void set_kernel(const KernelState& state);
  void set_device(const DeviceInfo& device);
  void set_sample(const Sample& sample);  // of a device that is not set: ignored
  void set_clients(const std::string& id, std::vector<GpuClient> clients);
  void remove_device(const std::string& id);
  void set_condition(const Condition& condition);  // a cleared one is removed
  void remove_condition(const std::string& id);
  void set_action(const ActionView& action);
  void remove_action(const std::string& id);
  void set_job(const JobView& job);
  void remove_job(const std::string& id);
  void add_event(const Event& event);

  [[nodiscard]] const DeviceObject* device(const std::string& id) const;
  [[nodiscard]] const ConditionObject* condition(const std::string& id) const;

  // A new connection, with the name just taken: whoever looks now sees everything, so nothing is left to be told.
  void mark_all_told();
  [[nodiscard]] bool anything_to_tell() const { return to_tell; }

  ManagerState manager;
  std::string health = "ok";
  std::bitset<manager_property::Count> manager_changed;
  KernelState kernel;
  KernelChanges kernel_changed;
  std::map<std::string, DeviceObject> devices;        // by object path
  std::map<std::string, ConditionObject> conditions;  // by object path
  std::map<std::string, ActionObject> actions;        // by object path
  std::map<std::string, JobObject> jobs;              // by object path
  std::string canary_problem = "this daemon runs no canaries";
  std::vector<Removal> removals;
  std::vector<Event> events;  // at most 64, the last ones
  bool to_tell = false;

 private:
  void judge_health();
};

}  // namespace gpuhealth::dbus
