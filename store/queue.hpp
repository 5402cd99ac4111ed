// SPDX-License-Identifier: Apache-2.0
// What waits for the worker: bounded, and choosy about what is lost. Not locked; the worker's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "store/database.hpp"

namespace gpuhealth::store {

struct SeenWork {
  DeviceInfo device;
  std::string label;
  std::string boot_id;
  WallTime now;
};
struct ForgetWork {
  std::string id;
};
using Work = std::variant<Sample, Event, Condition, SeenWork, ForgetWork>;
// Called with null when there is no database, and then answers with the problem.
using Query = std::function<void(Database*)>;

class Queue {
 public:
  static constexpr std::size_t kMostSamples = 1024;
  static constexpr std::size_t kMostRecords = 4096;  // events, conditions, devices
  static constexpr std::size_t kMostQueries = 256;

  // Beyond the bounds the oldest sample goes, or the oldest record but a condition's. A condition that waits is
  // replaced by its newer state.
  void push(Work work);
  void push_front(Work work) { put(std::move(work), true); }  // one that failed, for another try
  std::optional<Work> pop();

  bool push(Query query);  // false: too many
  std::optional<Query> pop_query();

  [[nodiscard]] std::size_t samples() const { return samples_; }
  [[nodiscard]] bool has_records() const { return work_.size() > samples_; }
  [[nodiscard]] bool has_queries() const { return !queries_.empty(); }
  [[nodiscard]] bool has_work() const { return !work_.empty(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  void drop_all();

 private:
  void put(Work work, bool in_front);
  template <class Chosen>
  void drop_first(Chosen chosen);

  std::deque<Work> work_;
  std::deque<Query> queries_;
  std::size_t samples_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace gpuhealth::store
