// SPDX-License-Identifier: Apache-2.0
// A made-up GPU before an engine, with a clock that tests move. Default: an RX 7900 XTX that idles on a desktop.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "health/engine.hpp"

namespace gpuhealth::health {

DeviceInfo navi31();
Sample idle_desktop();

// Changes one reading of a sample, or adds it.
void set(Sample& sample, ReadingId id, double value);
void set_status(Sample& sample, ReadingId id, ReadingStatus status);
// Adds what a heavy 3D load does to the readings of navi31(): busy, hot, near its limit, full link.
void put_under_load(Sample& sample);

struct Seen {
  ChangeKind kind;
  ConditionType type;
  friend bool operator==(const Seen&, const Seen&) = default;
};

class Machine {
 public:
  explicit Machine(DeviceInfo device_info = navi31(), Thresholds thresholds = {});

  // Feeds the sample as it is now.
  void look();
  // Feeds it every `period` for `time`; `before_each` may change it.
  void run(Duration time, Duration period = std::chrono::seconds(2),
           const std::function<void(Sample&)>& before_each = {});
  void pass(Duration time) { clock.advance(time); }  // without looking

  [[nodiscard]] std::vector<Seen> seen() const;  // all changes so far
  void forget() { changes.clear(); }
  [[nodiscard]] bool confirmed(ConditionType type) const;
  [[nodiscard]] const Condition* open(ConditionType type) const;
  void take(std::vector<Change> more);

  DeviceInfo device;
  Sample sample = idle_desktop();
  ManualClock clock{Now{wall_from_microseconds(1'764'515'000'000'000), {3'600'000'000}}};
  Engine engine;
  std::vector<Change> changes;

 private:
  mutable std::vector<Condition> open_;
};

// For gtest's messages.
void PrintTo(const Seen& seen, std::ostream* out);

// Evidence by name; "(none)" when it is not there.
std::string evidence(const Condition& condition, const std::string& name);

}  // namespace gpuhealth::health
