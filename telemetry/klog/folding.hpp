// SPDX-License-Identifier: Apache-2.0
// Lines become events: repetitions are counted, lines that say the same thing again are absorbed, a success that a
// later line takes back never becomes an event. Bounded, however many lines come.
#pragma once

#include <cstdint>
#include <vector>

#include "telemetry/klog/line.hpp"
#include "telemetry/klog/patterns.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::klog {

class Folding {
 public:
  // Where in the log a line stands: its time, and its number for logs that carry no time.
  struct Place {
    Stamp stamp;
    std::uint64_t line = 0;
  };

  void add(Event event, Weight weight, const Place& place);
  // The program concerned, as a line near `place` names it.
  void name_process(const std::optional<PciAddress>& device, std::string_view process, std::uint32_t pid,
                    const Place& place);
  // Ends bursts that are over at `now`.
  void advance(const Place& now);
  // Ends all bursts.
  void finish();

  [[nodiscard]] bool waits() const { return !open_.empty(); }

  // Offline: events whose burst is over, in the order in which they ended.
  std::vector<Event> take_closed();
  // Live: events not told yet, at once; and, when a burst ends, one that counts what came after (`count` lines).
  std::vector<Event> take_news();

 private:
  struct Open {
    Event event;
    Weight weight = Weight::Line;  // the heaviest line so far
    Place first, last;
    std::uint64_t told = 0;  // lines
    bool doubtful = false;   // no device yet, or tentative: not told at once
  };
  Open* find(const Event& event, Weight weight, const Place& place);
  void take_over(Open& open, Event&& event);
  void close(Open&& open);
  void withdraw(const Event& failure, const Place& place);

  std::vector<Open> open_;
  std::vector<Event> closed_;
  std::vector<Event> news_;
};

}  // namespace gpuhealth::klog
