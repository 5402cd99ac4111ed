// SPDX-License-Identifier: Apache-2.0
#include "exporter/families.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/version.hpp"
#include "dbus/names.hpp"
#include "exporter/names.hpp"

namespace gpuhealth::exporter {
namespace {

using dbus::flag;
using dbus::has;
using dbus::text;
using dbus::texts;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

double seconds(WallTime time) {
  return static_cast<double>(to_microseconds(time)) / 1e6;
}

// Families by name, each series once.
class Builder {
 public:
  void gauge(const std::string& name, const std::string& help, Labels labels, double value) {
    add(name, help, MetricType::Gauge, std::move(labels), value);
  }
  void counter(const std::string& name, const std::string& help, Labels labels, double value) {
    add(name, help, MetricType::Counter, std::move(labels), value);
  }
  // One series a name: 1 for `now`, 0 for the others; a name that is new gets a series too.
  void states(const std::string& name, const std::string& help, const Labels& labels,
              std::span<const std::string_view> all, std::string_view now) {
    const auto one = [&](std::string_view state, bool is) {
      Labels with = labels;
      with.emplace_back("state", state);
      gauge(name, help, std::move(with), is ? 1 : 0);
    };
    for (const auto state : all) one(state, state == now);
    if (!now.empty()) one(now, true);
  }

  std::vector<MetricFamily> take() {
    std::vector<MetricFamily> out;
    out.reserve(families_.size());
    for (auto& [name, family] : families_) out.push_back(std::move(family));
    return out;
  }

 private:
  void add(const std::string& name, const std::string& help, MetricType type, Labels labels, double value) {
    if (!seen_.emplace(name, labels).second) return;
    auto& family = families_[name];
    family.name = name;
    family.help = help;
    family.type = type;
    prometheus::ClientMetric metric;
    for (auto& [key, text] : labels) metric.label.push_back({std::move(key), std::move(text)});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family.metric.push_back(std::move(metric));
  }

  std::map<std::string, MetricFamily> families_;
  std::set<std::pair<std::string, Labels>> seen_;
};

Labels labels_of(const dbus::DeviceView& d) {
  return {{"device", d.id}, {"pci", d.pci}};
}

Labels with(Labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

void add_reading(Builder& out, const Labels& labels, const Reading& reading) {
  const ReadingInfo* info = find_reading(reading.id);
  // What is stale is not of now; a scrape has no place for the difference.
  if (info == nullptr || reading.status != ReadingStatus::Valid || !std::isfinite(reading.value)) return;
  if (info->name.starts_with("ras.")) {
    const auto block = info->name.substr(4, info->name.rfind('.') - 4);
    const auto kind = info->name.substr(info->name.rfind('.') + 1);
    out.counter(kRasFamily, "errors that the hardware found in its memory and logic, by block and kind",
                with(with(labels, "block", std::string(block)), "kind", std::string(kind)), reading.value);
    return;
  }
  const Metric metric = metric_of(*info);
  const double value = reading.value * metric.factor;
  metric.counter ? out.counter(metric.name, metric.help, labels, value)
                 : out.gauge(metric.name, metric.help, labels, value);
}

void add_device(Builder& out, const dbus::DeviceView& d) {
  static constexpr auto kHealth = std::to_array<std::string_view>({"ok", "info", "warning", "critical", "unknown"});
  static constexpr auto kPower = std::to_array<std::string_view>({"active", "suspended"});
  const Labels labels = labels_of(d);
  Labels facts = labels;
  for (auto& [key, value] : Labels{{"name", d.name},
                                   {"vendor_id", d.vendor_id},
                                   {"device_id", d.device_id},
                                   {"driver", d.driver},
                                   {"family", d.family},
                                   {"gfx", d.gfx},
                                   {"vbios_version", d.vbios_version}})
    facts.emplace_back(std::move(key), std::move(value));
  out.gauge("gpuhealth_device_info", "what the GPU is; always 1", facts, 1);
  out.states("gpuhealth_device_health",
             "1 for the worst severity of its confirmed conditions that nobody has acknowledged", labels, kHealth,
             d.health);
  out.states("gpuhealth_device_power_state", "1 for the state of its runtime power management", labels, kPower,
             d.runtime_status);
  if (to_microseconds(d.sampled) > 0)
    out.gauge("gpuhealth_device_sample_timestamp_seconds", "when its readings were taken", labels, seconds(d.sampled));
  std::map<std::string_view, double> statuses;
  for (const auto& r : d.readings) {
    add_reading(out, labels, r);
    statuses[to_string(r.status)] += 1;
  }
  for (const auto& [status, count] : statuses)
    out.gauge("gpuhealth_device_readings", "readings by status; those that are not valid have no series of their own",
              with(labels, "status", std::string(status)), count);
  if (d.throttle_known) {
    for (const auto& reason : d.throttle_reasons)
      out.gauge("gpuhealth_device_throttled", "1 for each reason why it runs below its clock",
                with(labels, "reason", reason), 1);
  }
  out.gauge("gpuhealth_device_clients", "processes that use it", labels, static_cast<double>(d.clients.size()));
}

void add_condition(Builder& out, const Condition& c) {
  Labels labels = {{"device", c.device}, {"type", std::string(info(c.type).name)}};
  out.gauge("gpuhealth_condition_acknowledged", "1 when somebody knows of the condition", labels,
            c.acknowledged ? 1 : 0);
  out.gauge("gpuhealth_condition_since_timestamp_seconds", "when the condition was first seen", labels,
            seconds(c.since));
  labels.emplace_back("severity", to_string(c.severity));
  labels.emplace_back("state", to_string(c.state));
  out.gauge("gpuhealth_condition", "1 for each condition that is open; absent when it is over", labels, 1);
}

void add_daemon(Builder& out, const dbus::Snapshot& s) {
  static constexpr auto kModes = std::to_array<std::string_view>({"observe", "shadow", "enforce"});
  out.gauge("gpuhealth_daemon_info", "which daemon answers, on which kernel; always 1",
            {{"version", s.manager.version},
             {"kernel_release", s.manager.kernel_release},
             {"amdgpu_version", s.manager.amdgpu.version}},
            1);
  out.gauge("gpuhealth_daemon_start_time_seconds", "when the daemon started", {}, seconds(s.manager.started));
  out.counter("gpuhealth_daemon_samples_total", "samples of all GPUs since the daemon started", {},
              static_cast<double>(s.manager.samples));
  out.gauge("gpuhealth_daemon_history_ok", "1 while history works", {}, s.manager.store_problem.empty() ? 1 : 0);
  out.gauge("gpuhealth_daemon_configuration_ok", "0 when the last reload of the configuration failed", {},
            s.manager.config_problem.empty() ? 1 : 0);
  const auto& p = s.manager_properties;
  if (has(p, "PolicyMode"))
    out.states("gpuhealth_policy_mode", "1 for the highest mode of any rule in force", {}, kModes,
               text(p, "PolicyMode"));
  if (has(p, "PolicyProblem"))
    out.gauge("gpuhealth_policy_ok", "0 when the policy files do not load and the last good set is in force", {},
              text(p, "PolicyProblem").empty() ? 1 : 0);
  if (has(p, "SafeMode"))
    out.gauge("gpuhealth_policy_safe_mode", "1 while nothing is enforced", {}, text(p, "SafeMode").empty() ? 0 : 1);
  if (has(p, "BreakerOpen"))
    out.gauge("gpuhealth_policy_breaker_open", "1 when the breaker has stopped all actions", {},
              flag(p, "BreakerOpen") ? 1 : 0);
}

void add_kernel(Builder& out, const dbus::Properties& p) {
  out.gauge("gpuhealth_kernel_info", "which kernel runs, boots next, and is known to be good; always 1",
            {{"running", text(p, "Running")},
             {"next", text(p, "Next")},
             {"last_known_good", text(p, "LastKnownGood")},
             {"pinned", text(p, "Pinned")},
             {"trial", text(p, "Trial")}},
            1);
  if (!text(p, "State").empty())
    out.gauge("gpuhealth_kernel_state", "1 for the verdict on the running kernel",
              {{"release", text(p, "Running")}, {"state", text(p, "State")}}, 1);
  out.gauge("gpuhealth_kernel_hold", "1 while new kernels wait for a verdict", {}, flag(p, "Hold") ? 1 : 0);
  out.gauge("gpuhealth_kernel_advisories", "advisories that apply to the running kernel", {},
            static_cast<double>(texts(p, "Advisories").size()));
}

void add_others(Builder& out, const std::vector<dbus::LooseObject>& objects) {
  std::map<Labels, double> actions;
  for (const auto& o : objects) {
    if (o.interface == dbus::kKernelInterface) add_kernel(out, o.properties);
    if (o.interface != dbus::kActionInterface) continue;
    actions[{{"device", text(o.properties, "Device")},
             {"kind", text(o.properties, "Kind")},
             {"state", text(o.properties, "State")}}] += 1;
  }
  for (const auto& [labels, count] : actions)
    out.gauge("gpuhealth_actions", "actions that the daemon shows, by kind and state", labels, count);
}

// Results name a device by its PCI address.
std::string device_at(const State& state, const std::string& pci) {
  if (!state.snapshot) return {};
  const auto& devices = state.snapshot->devices;
  const auto it = std::ranges::find(devices, pci, &dbus::DeviceView::pci);
  return it == devices.end() ? std::string() : it->id;
}

void add_canaries(Builder& out, const State& state) {
  for (const auto& c : state.canaries.last) {
    const auto device = device_at(state, c.device);
    if (device.empty()) continue;  // its series vanish with it
    const Labels labels = {{"device", device}, {"pci", c.device}, {"canary", c.canary}, {"metric", c.metric}};
    out.gauge("gpuhealth_canary_last_run_timestamp_seconds", "when the canary last ran", labels, c.time);
    out.gauge("gpuhealth_canary_last_status", "1 for how the last run ended",
              with(labels, "status", std::string(to_string(c.status))), 1);
    if (c.ratio)
      out.gauge("gpuhealth_canary_slowdown_ratio", "time of the last run over that of the baseline: 1 is as ever",
                labels, *c.ratio);
  }
  for (const auto& f : state.canaries.open) {
    const auto device = device_at(state, f.device);
    if (device.empty()) continue;
    out.gauge("gpuhealth_canary_finding", "1 for each verdict of the statistics that holds",
              {{"device", device},
               {"pci", f.device},
               {"canary", f.canary},
               {"metric", f.metric},
               {"kind", std::string(to_string(f.kind))},
               {"level", std::string(to_string(f.level))}},
              1);
  }
}

void add_own(Builder& out, const State& state, const OwnCost& cost) {
  out.gauge("gpuhealth_exporter_info", "version of this exporter; always 1", {{"version", kVersion}}, 1);
  out.gauge("gpuhealth_daemon_up", "1 while the daemon answers", {}, state.snapshot ? 1 : 0);
  out.gauge("gpuhealth_exporter_canary_results_readable", "1 while the canaries' results can be read", {},
            state.canaries.readable ? 1 : 0);
  if (to_microseconds(state.answered) > 0) {
    out.gauge("gpuhealth_exporter_last_answer_timestamp_seconds", "when the daemon last answered", {},
              seconds(state.answered));
    out.gauge("gpuhealth_exporter_last_answer_duration_seconds", "how long the daemon took to answer", {},
              state.ask_seconds);
  }
  out.counter("process_cpu_seconds_total", "processor time that this exporter has used", {}, cost.cpu_seconds);
  out.gauge("process_resident_memory_bytes", "memory of this exporter", {}, cost.resident_bytes);
  out.gauge("process_start_time_seconds", "when this exporter started", {}, cost.start_time);
  out.gauge("process_open_fds", "open files of this exporter", {}, cost.open_files);
}

}  // namespace

std::vector<MetricFamily> families(const State& state, const OwnCost& cost) {
  Builder out;
  add_own(out, state, cost);
  if (state.snapshot) {
    add_daemon(out, *state.snapshot);
    for (const auto& device : state.snapshot->devices) add_device(out, device);
    for (const auto& condition : state.snapshot->conditions) add_condition(out, condition);
    add_others(out, state.snapshot->others);
    add_canaries(out, state);
  }
  return out.take();
}

}  // namespace gpuhealth::exporter
