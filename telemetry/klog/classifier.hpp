// SPDX-License-Identifier: Apache-2.0
// Kernel log lines in, typed events of GPUs out. Pure: no clock, no files. docs/kernel-log.md says what it knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/klog/facts.hpp"
#include "telemetry/klog/folding.hpp"
#include "telemetry/klog/line.hpp"
#include "telemetry/klog/patterns.hpp"
#include "telemetry/klog/pcie.hpp"
#include "telemetry/klog/traces.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::klog {

class Classifier {
 public:
  explicit Classifier(Facts facts = {}) : facts_(std::move(facts)) {}

  // What the line teaches of the machine; true when it may be, or belong to, an event.
  bool learn(std::string_view text);
  // learn() must have seen the line, then or now.
  void feed(std::string_view text, std::uint64_t number);
  // Time has passed without a line.
  void advance(const Stamp& now) { folding_.advance({now, number_}); }
  void finish();

  std::vector<Event> take_closed() { return folding_.take_closed(); }
  std::vector<Event> take_news() { return folding_.take_news(); }
  Facts& facts() { return facts_; }
  [[nodiscard]] bool waits() const { return folding_.waits(); }  // bursts that time will end

 private:
  struct Parsed {
    Line line;
    Origin origin;
  };
  [[nodiscard]] bool parse(std::string_view text, Parsed& out);
  void rows(const Parsed& parsed, const Folding::Place& place);
  void hooks(const Parsed& parsed, const Folding::Place& place);
  void xid(const Parsed& parsed, const Folding::Place& place);
  void process(const Parsed& parsed, const Folding::Place& place);
  void add(PcieFinding finding);
  void add(Traces::Found found, Weight weight = Weight::Line);
  [[nodiscard]] Event event_of(const Parsed& parsed) const;
  [[nodiscard]] std::optional<PciAddress> card_of(std::string_view text) const;

  Facts facts_;
  Folding folding_;
  Traces traces_;
  GhesRecord ghes_;
  Candidates candidates_;
  std::string clean_;  // a line without its escapes
  std::uint64_t number_ = 0;
};

// A whole log, oldest line first. What a later line tells of the machine counts for earlier ones. Sorted by line.
std::vector<Event> classify(std::string_view log);

}  // namespace gpuhealth::klog
