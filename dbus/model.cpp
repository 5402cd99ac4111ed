// SPDX-License-Identifier: Apache-2.0
#include "dbus/model.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "dbus/names.hpp"

namespace gpuhealth::dbus {
namespace {

// Everything that the device's constant properties show.
auto identity(const DeviceInfo& d) {
  return std::tie(d.pci, d.vendor_id, d.device_id, d.subsystem_vendor, d.subsystem_device, d.driver, d.unique_id,
                  d.vbios_version, d.name, d.other_names, d.family, d.gfx, d.firmware, d.compute_nodes,
                  d.compute_partition, d.memory_partition, d.xgmi_peers);
}

// Likewise of a condition: all that set_condition() may not change under a living object.
auto identity(const Condition& c) {
  return std::tie(c.type, c.device, c.since, c.boot_id);
}

// Old, stuck or unreadable values say nothing of how a GPU is now; that one sleeps does.
bool says_something(const std::optional<Sample>& sample) {
  return sample && std::ranges::any_of(sample->readings, [](const Reading& r) {
           return r.status == ReadingStatus::Valid || r.status == ReadingStatus::Asleep;
         });
}

std::string health_of(std::optional<Severity> worst) {
  return worst ? std::string(to_string(*worst)) : "ok";
}

}  // namespace

void Model::set_manager(const ManagerState& state) {
  using namespace manager_property;
  if (state.store_problem != manager.store_problem) manager_changed.set(StoreProblem);
  if (state.config_problem != manager.config_problem) manager_changed.set(ConfigProblem);
  if (state.policy_mode != manager.policy_mode) manager_changed.set(PolicyMode);
  if (state.safe_mode != manager.safe_mode) manager_changed.set(SafeMode);
  if (state.policy_problem != manager.policy_problem) manager_changed.set(PolicyProblem);
  if (state.breaker_open != manager.breaker_open) manager_changed.set(BreakerOpen);
  if (state.policy_files != manager.policy_files) manager_changed.set(PolicyFiles);
  manager = state;
  to_tell |= manager_changed.any();
}

void Model::set_kernel(const KernelState& state) {
  kernel_changed |= differences(kernel, state);
  kernel = state;
  to_tell |= kernel_changed.any();
}

void Model::set_device(const DeviceInfo& device) {
  const std::string id = device.id();
  const std::string path = device_path(id);
  auto it = devices.find(path);
  if (it != devices.end() && identity(it->second.info) == identity(device)) {
    it->second.info = device;
    return;
  }
  std::optional<Sample> sample;
  if (it != devices.end()) {
    sample = std::move(it->second.sample);
    remove_device(id);
  }
  auto& object = devices[path];
  object.info = device;
  object.id = id;
  object.sample = std::move(sample);
  to_tell = true;
  judge_health();
}

void Model::set_sample(const Sample& sample) {
  using namespace device_property;
  const auto it = devices.find(device_path(sample.device));
  if (it == devices.end()) return;
  auto& object = it->second;
  static const Sample nothing;
  const Sample& before = object.sample ? *object.sample : nothing;
  if (before.power != sample.power) object.changed.set(RuntimeStatus);
  if (before.performance_level != sample.performance_level) object.changed.set(PerformanceLevel);
  if (before.power_profile != sample.power_profile) object.changed.set(PowerProfile);
  if (before.throttle != sample.throttle) object.changed.set(ThrottleReasons);
  if (before.throttle_known != sample.throttle_known) object.changed.set(ThrottleKnown);
  const bool said = says_something(object.sample);
  object.sample = sample;
  if (said != says_something(object.sample)) judge_health();
  to_tell |= object.changed.any();
}

// They move all the time and are polled: nothing is announced.
void Model::set_clients(const std::string& id, std::vector<GpuClient> clients) {
  if (const auto it = devices.find(device_path(id)); it != devices.end()) it->second.clients = std::move(clients);
}

void Model::remove_device(const std::string& id) {
  const auto it = devices.find(device_path(id));
  if (it == devices.end()) return;
  if (it->second.announced) removals.push_back({it->first, std::nullopt, kDeviceInterface});
  devices.erase(it);
  to_tell |= !removals.empty();
}

void Model::set_condition(const Condition& condition) {
  using namespace condition_property;
  if (condition.state == ConditionState::Cleared) return remove_condition(condition.id);
  const std::string path = condition_path(condition.id);
  auto it = conditions.find(path);
  if (it != conditions.end() && identity(it->second.condition) != identity(condition)) {
    remove_condition(condition.id);
    it = conditions.end();
  }
  if (it == conditions.end()) {
    auto& object = conditions[path];
    object.condition = condition;
    object.device_path = device_path(condition.device);
    object.life_changed = true;
  } else {
    auto& object = it->second;
    const Condition& before = object.condition;
    if (before.severity != condition.severity) object.changed.set(Severity);
    if (before.state != condition.state) object.changed.set(State);
    if (before.acknowledged != condition.acknowledged) object.changed.set(Acknowledged);
    if (before.device_label != condition.device_label) object.changed.set(DeviceLabel);
    object.life_changed |= object.changed[Severity] || object.changed[State] || object.changed[Acknowledged];
    object.condition = condition;
    to_tell |= object.changed.any();
  }
  to_tell |= it == conditions.end();
  judge_health();
}

void Model::remove_condition(const std::string& id) {
  const auto it = conditions.find(condition_path(id));
  if (it == conditions.end()) return;
  if (it->second.announced) {
    it->second.condition.state = ConditionState::Cleared;
    removals.push_back({it->first, std::move(it->second.condition), kConditionInterface});
  }
  conditions.erase(it);
  to_tell |= !removals.empty();
  judge_health();
}

void Model::set_action(const ActionView& action) {
  using namespace action_property;
  auto& object = actions[action_path(action.id)];
  const ActionView& before = object.action;
  const auto note = [&](std::size_t bit, bool differs) {
    if (differs) object.changed.set(bit);
  };
  note(DeviceLabel, before.device_label != action.device_label);
  note(State, before.state != action.state);
  note(Reason, before.reason != action.reason);
  note(Text, before.text != action.text);
  note(Before, before.before != action.before);
  note(Wanted, before.wanted != action.wanted);
  note(After, before.after != action.after);
  note(Fault, before.fault != action.fault);
  note(Detected, before.detected != action.detected);
  note(Acted, before.acted != action.acted);
  note(Verified, before.verified != action.verified);
  note(ConfirmBy, before.confirm_by != action.confirm_by);
  object.action = action;
  to_tell |= !object.announced || object.changed.any();
}

void Model::remove_action(const std::string& id) {
  const auto it = actions.find(action_path(id));
  if (it == actions.end()) return;
  if (it->second.announced) removals.push_back({it->first, std::nullopt, kActionInterface});
  actions.erase(it);
  to_tell |= !removals.empty();
}

void Model::set_job(const JobView& job) {
  auto& object = jobs[job_path(job.id)];
  update(object, job);
  to_tell |= !object.announced || object.changed.any() || object.results_told < job.results.size();
}

void Model::remove_job(const std::string& id) {
  const auto it = jobs.find(job_path(id));
  if (it == jobs.end()) return;
  if (it->second.announced) removals.push_back({it->first, std::nullopt, kJobInterface});
  jobs.erase(it);
  to_tell |= !removals.empty();
}

const DeviceObject* Model::device(const std::string& id) const {
  const auto it = devices.find(device_path(id));
  return it == devices.end() ? nullptr : &it->second;
}

const ConditionObject* Model::condition(const std::string& id) const {
  const auto it = conditions.find(condition_path(id));
  return it == conditions.end() ? nullptr : &it->second;
}

void Model::add_event(const Event& event) {
  constexpr std::size_t kMost = 64;
  if (events.size() >= kMost) events.erase(events.begin());
  events.push_back(event);
  to_tell = true;
}

void Model::mark_all_told() {
  removals.clear();
  events.clear();
  manager_changed.reset();
  kernel_changed.reset();
  for (auto& [path, object] : devices) {
    object.announced = true;
    object.changed.reset();
  }
  for (auto& [path, object] : conditions) {
    object.announced = true;
    object.life_changed = false;
    object.changed.reset();
  }
  for (auto& [path, object] : actions) {
    object.announced = true;
    object.changed.reset();
  }
  for (auto& [path, object] : jobs) {
    object.announced = true;
    object.results_told = object.job.results.size();
    object.changed.reset();
  }
  to_tell = false;
}

void Model::judge_health() {
  std::map<std::string, Severity> worst;  // by device id
  std::optional<Severity> worst_of_all;
  for (const auto& [path, object] : conditions) {
    const Condition& c = object.condition;
    if (c.state != ConditionState::Confirmed || c.acknowledged) continue;
    const auto [it, added] = worst.try_emplace(c.device, c.severity);
    if (!added) it->second = std::max(it->second, c.severity);
    worst_of_all = std::max(worst_of_all.value_or(c.severity), c.severity);
  }
  std::string now = health_of(worst_of_all);
  if (now != health) {
    health = std::move(now);
    manager_changed.set(manager_property::Health);
    to_tell = true;
  }
  for (auto& [path, object] : devices) {
    const auto it = worst.find(object.id);
    std::string state = it != worst.end() ? health_of(it->second) : says_something(object.sample) ? "ok" : "unknown";
    if (state == object.health) continue;
    object.health = std::move(state);
    object.changed.set(device_property::Health);
    to_tell = true;
  }
}

}  // namespace gpuhealth::dbus
