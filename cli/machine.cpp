// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace gpuhealth::cli {
namespace {

template <class Items, class Key>
auto find_by(const Items& items, Key key, const std::string& wanted) -> decltype(&*items.begin()) {
  const auto it = std::ranges::find(items, wanted, key);
  return it == items.end() ? nullptr : &*it;
}

void device_changes(const Machine& before, const Machine& after, std::vector<MachineChange>& out) {
  for (const auto& device : after.devices) {
    const auto* old = find_by(before.devices, &dbus::DeviceView::id, device.id);
    if (old == nullptr) {
      out.push_back({"device.added", device.id, label(device) + " is there now", Severity::Info});
      continue;
    }
    if (asleep(*old) != asleep(device)) {
      out.push_back({"power.changed", device.id, label(device) + (asleep(device) ? " went to sleep" : " woke up"),
                     Severity::Info});
    }
    if (old->throttle_reasons != device.throttle_reasons) {
      const std::string reasons = fmt::format("{}", fmt::join(device.throttle_reasons, ", "));
      out.push_back({"throttle.changed", device.id,
                     label(device) + (reasons.empty() ? " is no longer slowed" : " is slowed: " + reasons),
                     Severity::Info});
    }
  }
  for (const auto& device : before.devices) {
    if (find_by(after.devices, &dbus::DeviceView::id, device.id) == nullptr)
      out.push_back({"device.removed", device.id, label(device) + " is gone", Severity::Warning});
  }
}

constexpr const char* kOnlySeen = " (seen, not yet confirmed)";

void condition_changes(const Machine& before, const Machine& after, std::vector<MachineChange>& out) {
  for (const auto& c : after.conditions) {
    const auto* old = find_by(before.conditions, &Condition::id, c.id);
    const std::string text = std::string(info(c.type).title) + ": " + c.device_label;
    if (old == nullptr || old->state != c.state) {
      // Nobody needs to act on one that is not confirmed, or that somebody knows of.
      const char* mark = c.acknowledged ? " (acknowledged)" : c.state == ConditionState::Raised ? kOnlySeen : "";
      out.push_back({"condition." + std::string(to_string(c.state)), c.device,
                     text + (c.detail.empty() ? "" : ": " + c.detail) + mark,
                     needs_attention(c) ? c.severity : Severity::Info});
    } else if (!old->acknowledged && c.acknowledged) {
      out.push_back({"condition.acknowledged", c.device, text, Severity::Info});
    }
  }
  for (const auto& c : before.conditions) {
    if (find_by(after.conditions, &Condition::id, c.id) == nullptr)
      out.push_back({"condition.cleared", c.device, std::string(info(c.type).title) + ": " + c.device_label + ": over",
                     Severity::Info});
  }
}

void daemon_changes(const Machine& before, const Machine& after, std::vector<MachineChange>& out) {
  if (before.manager.store_problem != after.manager.store_problem) {
    const bool works = after.manager.store_problem.empty();
    out.push_back({"history.changed", "", works ? "history works again" : "history: " + after.manager.store_problem,
                   works ? Severity::Info : Severity::Warning});
  }
  if (before.manager.policy_problem != after.manager.policy_problem) {
    const bool works = after.manager.policy_problem.empty();
    out.push_back({"policy.changed", "", works ? "policies were loaded" : "policies: " + after.manager.policy_problem,
                   works ? Severity::Info : Severity::Warning});
  }
  if (before.manager.safe_mode != after.manager.safe_mode) {
    const bool over = after.manager.safe_mode.empty();
    out.push_back({"safe-mode.changed", "", over ? "safe mode is over" : "safe mode: " + after.manager.safe_mode,
                   over ? Severity::Info : Severity::Warning});
  }
  if (before.manager.config_problem != after.manager.config_problem) {
    const bool works = after.manager.config_problem.empty();
    out.push_back({"configuration.changed", "",
                   works ? "configuration was loaded" : "configuration: " + after.manager.config_problem,
                   works ? Severity::Info : Severity::Warning});
  }
}

}  // namespace

bool needs_attention(const Condition& condition) {
  return condition.state == ConditionState::Confirmed && !condition.acknowledged &&
         condition.severity != Severity::Info;
}

bool needs_attention(std::span<const Condition> conditions) {
  return std::ranges::any_of(conditions, [](const Condition& c) { return needs_attention(c); });
}

bool silent(const dbus::DeviceView& device) {
  return device.health == "unknown" && to_microseconds(device.sampled) > 0;
}

bool needs_attention(const Machine& machine) {
  return needs_attention(machine.conditions) || std::ranges::any_of(machine.devices, silent);
}

std::vector<Condition> worst_first(std::vector<Condition> conditions) {
  std::ranges::sort(conditions, {}, [](const Condition& c) {
    return std::tuple(!needs_attention(c), c.state, -static_cast<int>(c.severity), c.since, std::string_view(c.id));
  });
  return conditions;
}

bool asleep(const dbus::DeviceView& device) {
  return device.runtime_status == "suspended" || device.runtime_status == "suspending";
}

const Reading* find(const dbus::DeviceView& device, ReadingId id) {
  const auto it = std::ranges::find(device.readings, id, &Reading::id);
  return it == device.readings.end() ? nullptr : &*it;
}

std::optional<double> value(const dbus::DeviceView& device, ReadingId id) {
  const Reading* reading = find(device, id);
  if (reading == nullptr || reading->status != ReadingStatus::Valid) return std::nullopt;
  return reading->value;
}

std::string display_name(const dbus::DeviceView& device) {
  if (!device.name.empty()) return device.name;
  const auto digits = [](const std::string& id) { return id.starts_with("0x") ? id.substr(2) : id; };
  return "GPU " + digits(device.vendor_id) + ":" + digits(device.device_id);
}

std::string label(const dbus::DeviceView& device) {
  return display_name(device) + " at " + device.pci;
}

std::string summary(const Machine& machine) {
  const std::size_t count = machine.devices.size();
  std::size_t bad = 0;
  std::size_t unknown = 0;
  std::size_t quiet = 0;
  for (const auto& d : machine.devices) {
    const bool attention = std::ranges::any_of(
        machine.conditions, [&](const Condition& c) { return c.device == d.id && needs_attention(c); });
    bad += attention ? 1 : 0;
    unknown += !attention && d.health == "unknown" ? 1 : 0;
    quiet += !attention && silent(d) ? 1 : 0;
  }
  if (bad > 0 && count == 1) return "The GPU needs attention.";
  if (bad > 0) return fmt::format("{} of {} GPUs {} attention.", bad, count, bad == 1 ? "needs" : "need");
  if (needs_attention(machine.conditions)) return "The machine needs attention.";
  if (count == 0) return "No GPU found.";
  if (quiet > 0)
    return fmt::format("No fresh values from {} of {} GPUs; whether they are well is not known.", quiet, count);
  if (unknown > 0) return fmt::format("Nothing is wrong; {} of {} GPUs not judged yet.", unknown, count);
  return count == 1 ? "The GPU is healthy." : fmt::format("All {} GPUs are healthy.", count);
}

std::optional<WallTime> last_sample(const Machine& machine) {
  std::optional<WallTime> last;
  for (const auto& d : machine.devices) {
    if (to_microseconds(d.sampled) > 0 && (!last || d.sampled > *last)) last = d.sampled;
  }
  return last;
}

std::vector<MachineChange> changes(const Machine& before, const Machine& after) {
  std::vector<MachineChange> out;
  device_changes(before, after, out);
  condition_changes(before, after, out);
  daemon_changes(before, after, out);
  return out;
}

}  // namespace gpuhealth::cli
