// SPDX-License-Identifier: Apache-2.0
// A machine for the evaluator's tests: policies from text, GPUs that say what a test lets them say, time by hand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "policy/evaluate.hpp"

namespace gpuhealth::policy::test {

using namespace std::chrono_literals;

inline Policy policy_of(const std::string& rules, const std::string& top = "mode: enforce\n",
                        const std::string& name = "p") {
  auto parsed = parse_policy(name + ".yaml", "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: " + name +
                                                 "}\n" + top + "rules:\n" + rules);
  for (const auto& m : parsed.mistakes) ADD_FAILURE() << yaml::line_of(name, m);
  return parsed.policy.value_or(Policy{});
}

class Machine {
 public:
  explicit Machine(std::vector<Policy> policies, std::size_t gpus = 1) {
    set.policies = std::move(policies);
    snapshot.machine.boot_id = "boot-1";
    for (std::size_t i = 0; i < gpus; ++i) {
      DeviceState d;
      d.id = "gpu" + std::to_string(i);
      d.vendor = "amd";
      d.busy = false;
      snapshot.devices.push_back(std::move(d));
    }
  }
  explicit Machine(const std::string& rules, std::size_t gpus = 1) : Machine(std::vector{policy_of(rules)}, gpus) {}

  void wait(Duration time) { now.wall += time, now.steady = now.steady + time; }
  void confirm(ConditionType type, std::size_t gpu = 0) {
    Condition c;
    c.type = type, c.severity = info(type).severity, c.state = ConditionState::Confirmed;
    c.device = snapshot.devices.at(gpu).id, c.id = condition_id(type, c.device, now.wall), c.since = now.wall;
    snapshot.devices.at(gpu).conditions.push_back(c);
    snapshot.events.push_back({now.wall, "condition.confirmed", c.device, type});
  }
  void clear(std::size_t gpu = 0) { snapshot.devices.at(gpu).conditions.clear(); }
  void read(ReadingId id, double value, std::size_t gpu = 0) {
    auto& readings = snapshot.devices.at(gpu).readings;
    std::erase_if(readings, [&](const Reading& r) { return r.id == id; });
    readings.push_back({id, ReadingStatus::Valid, 0, value});
  }
  std::vector<Decision> look(const EvaluateOptions& options = {}) {
    auto out = evaluate(snapshot, set, std::move(state), now, options);
    state = std::move(out.state);
    tripped = out.breaker_tripped;
    return std::move(out.decisions);
  }
  // "act r gpu0", "blocked:budget r gpu0"
  std::vector<std::string> says(const EvaluateOptions& options = {}) {
    std::vector<std::string> out;
    for (const auto& d : look(options))
      out.push_back(std::string(to_string(d.outcome)) +
                    (d.block == Block::None ? "" : ":" + std::string(to_string(d.block))) + " " + d.rule + " " +
                    d.device);
    return out;
  }

  PolicySet set;
  Snapshot snapshot;
  State state;
  Now now{WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)), {1'000'000'000}};  // a Monday
  bool tripped = false;
};
using Says = std::vector<std::string>;

}  // namespace gpuhealth::policy::test
