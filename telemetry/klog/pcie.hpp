// SPDX-License-Identifier: Apache-2.0
// PCIe errors in the log: AER in the wordings since Linux 4.4, DPC, a slot's link, and the firmware's records (APEI).
// Which of them concern a GPU is asked of Facts; a "[Hardware Error]" is never an error of the GPU's own memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/klog/facts.hpp"
#include "telemetry/klog/folding.hpp"
#include "telemetry/klog/origin.hpp"

namespace gpuhealth::klog {

struct PcieFinding {
  Event event;
  Weight weight = Weight::Line;
  Folding::Place place;
};

// An AER, DPC or slot line; `base` has line, text and time. Nothing when it is none, or not a GPU's.
std::optional<PcieFinding> read_pcie(Event base, const Origin& origin, const Facts& facts, const Folding::Place& place);
// What such a line teaches: ids of ports, devices that are no GPU and complain.
void learn_pcie(const Origin& origin, Facts& facts);

// Collects the lines of one firmware record.
class GhesRecord {
 public:
  // A finding when the record's PCIe section is complete.
  std::optional<PcieFinding> line(Event base, std::string_view text, const Facts& facts, const Folding::Place& place);
  std::optional<PcieFinding> finish(const Facts& facts);

 private:
  void begin();
  bool pcie_ = false;
  std::string severity_;
  std::optional<std::pair<Event, Folding::Place>> device_;
  bool port_of_gpu_ = false;
};

}  // namespace gpuhealth::klog
