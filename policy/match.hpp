// SPDX-License-Identifier: Apache-2.0
// Does a rule's `when` hold for a GPU: yes, no, or not known. Private to the evaluator.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "policy/evaluate.hpp"

namespace gpuhealth::policy {

enum class Tri : std::int8_t { No = -1, Unknown = 0, Yes = 1 };

// A snapshot's GPU, laid out for many questions.
struct IndexedDevice {
  static constexpr std::size_t kReadings = static_cast<std::size_t>(ReadingId::RasFirst) + kRasReadingCount;
  struct PastOne {
    std::int64_t time_us = 0;
    int type = 0;
    int condition = -1;
  };
  const DeviceState* device = nullptr;
  std::uint64_t confirmed = 0;             // a bit a condition type
  std::uint64_t acknowledged = 0;          // of those
  std::array<double, kReadings> values{};  // NaN: not known
  std::vector<PastOne> events;
};
static_assert(static_cast<std::size_t>(ConditionType::Count) <= 64);
std::vector<IndexedDevice> index_devices(const Snapshot& snapshot);

struct MatchContext {
  const Snapshot& snapshot;
  const IndexedDevice& device;
  const Now& now;
  bool active = false;       // acknowledged conditions go on to count
  std::uint16_t memory = 0;  // in and out
  // When the named rule of the same policy last decided about this GPU, in wall time.
  const std::function<std::optional<std::int64_t>(const std::string& rule)>* last_firing = nullptr;
};
Tri holds(const When& when, MatchContext& context, bool negated = false);

// What speaks for it, in words; and the condition that asks, if one does.
struct Why {
  std::vector<std::string> parts;
  const Condition* condition = nullptr;
};
void explain(const When& when, const MatchContext& context, Why& why, bool negated = false);
const Condition* find_condition(const ConditionMatch& match, const DeviceState& device);
std::string cause_of(const Condition& condition);  // empty: none named

}  // namespace gpuhealth::policy
