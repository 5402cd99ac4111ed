// SPDX-License-Identifier: Apache-2.0
// Traces of the kernel (crash, hung task, lock-up) and kills for lack of memory: they count when a later line shows
// that a GPU driver, or a program that uses a GPU, is concerned.
#pragma once

#include <optional>
#include <string_view>

#include "telemetry/klog/facts.hpp"
#include "telemetry/klog/folding.hpp"

namespace gpuhealth::klog {

class Traces {
 public:
  using Found = std::optional<std::pair<Event, Folding::Place>>;

  // `event` has line, text and time set. Gives the event when the head itself shows a GPU driver.
  Found head(Event event, std::string_view text, const Folding::Place& place);
  Found frame(std::string_view text, const Folding::Place& place);
  void end() { trace_.reset(); }

  // Gives oom.kill for a program that uses a GPU; `echo` when another line says it better.
  Found out_of_memory(Event event, std::string_view text, const Facts& facts, const Folding::Place& place, bool& echo);

 private:
  struct Trace {
    Event event;
    Folding::Place place;
  };
  std::optional<Trace> trace_;
  std::optional<Trace> oom_;
  bool oom_in_driver_ = false;
};

}  // namespace gpuhealth::klog
