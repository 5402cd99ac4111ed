// SPDX-License-Identifier: Apache-2.0
// All that a decision may rest on: what the machine is, what its GPUs say now, and what happened lately. Made by the
// daemon, by policy tests and by replay; the evaluator reads nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "canary/stats/judge.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/reading.hpp"
#include "policy/policy.hpp"

namespace gpuhealth::policy {

struct MachineFacts {
  std::string host;
  std::map<std::string, std::string> labels;  // of /etc/gpuhealthd/labels
  std::string distribution;                   // os-release ID
  std::string version;                        // VERSION_ID
  std::string kernel;                         // uname -r
  std::string machine_id;
  std::string boot_id;
};

// An open, confirmed finding of the canaries.
struct CanaryFact {
  std::string canary;
  canary::stats::FindingKind finding{};
  std::optional<double> ratio;  // times slower
  std::string detail;
};

struct DeviceState {
  std::string id;                 // DeviceInfo::id()
  std::string label;              // for people; empty: the id
  std::string vendor;             // "amd", "intel", "nvidia"; empty: not known
  std::string gfx;                // empty: not known
  std::vector<std::string> skus;  // product names, "1002:744c"
  std::optional<double> vram;     // bytes
  bool asleep = false;
  std::optional<bool> busy;  // programs use it; nothing: not known
  std::vector<Reading> readings;
  std::vector<Condition> conditions;  // open ones
  std::vector<CanaryFact> canaries;
};

struct PastEvent {
  WallTime time;
  std::string type;
  std::string device;  // empty: not known which; taken as that of a machine's only GPU
  std::optional<ConditionType> condition;
};

struct Snapshot {
  MachineFacts machine;
  std::optional<bool> on_battery;
  int utc_offset_s = 0;
  std::vector<std::string> advisories;  // ids of those that apply to the running kernel
  std::vector<DeviceState> devices;     // also those that are gone and of which a condition is open
  std::vector<PastEvent> events;        // oldest first; as far back as rules may look
};

bool machine_matches(const Targets& targets, const MachineFacts& machine);
// What is not known of a GPU does not match what is asked of it.
bool gpu_matches(const Targets& targets, const DeviceState& device);

// "amd" of 0x1002.
std::string_view vendor_name(std::uint16_t vendor_id);

}  // namespace gpuhealth::policy
