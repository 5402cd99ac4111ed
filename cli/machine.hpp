// SPDX-License-Identifier: Apache-2.0
// What the daemon says at one moment, and what follows from it for people.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/condition.hpp"
#include "dbus/client.hpp"

namespace gpuhealth::cli {

struct Machine {
  dbus::ManagerView manager;
  std::vector<dbus::DeviceView> devices;
  std::vector<Condition> conditions;  // open ones
  WallTime now;
  std::vector<dbus::ActionView> actions{};  // by the time of their decision
};

// Confirmed, not acknowledged, warning or critical: what a person should act on. Exit code 1 follows from it.
bool needs_attention(const Condition& condition);
bool needs_attention(std::span<const Condition> conditions);

// It was sampled once, and none of its values is of now: nothing is known of it, which is not the same as healthy.
bool silent(const dbus::DeviceView& device);
// A condition to act on, or a silent GPU.
bool needs_attention(const Machine& machine);

// Worst first: what needs attention, then the rest; within that by severity, then the oldest.
std::vector<Condition> worst_first(std::vector<Condition> conditions);

bool asleep(const dbus::DeviceView& device);
const Reading* find(const dbus::DeviceView& device, ReadingId id);
std::optional<double> value(const dbus::DeviceView& device, ReadingId id);

// "Radeon RX 7900 XTX at 0000:03:00.0", "GPU 1002:744c at 0000:03:00.0".
std::string label(const dbus::DeviceView& device);
std::string display_name(const dbus::DeviceView& device);

// "All 3 GPUs are healthy.", "1 of 3 GPUs needs attention.", "No GPU found."
std::string summary(const Machine& machine);

// When the newest sample was taken; null when there is none yet.
std::optional<WallTime> last_sample(const Machine& machine);

struct MachineChange {
  std::string kind;    // "condition.confirmed", "device.added", "power.changed", …; all are in docs/json.md
  std::string device;  // id; empty when it concerns the machine
  std::string text;    // one sentence
  Severity severity = Severity::Info;
};
// What happened between two looks.
std::vector<MachineChange> changes(const Machine& before, const Machine& after);

}  // namespace gpuhealth::cli
