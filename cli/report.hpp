// SPDX-License-Identifier: Apache-2.0
// A report: what is wrong, what happened, how it was. Gathered once, then shown as a page, as JSON, or packed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/canary_results.hpp"
#include "cli/json.hpp"
#include "cli/machine.hpp"
#include "cli/page.hpp"
#include "cli/plot.hpp"
#include "core/event.hpp"

namespace gpuhealth::cli {

struct TimelineRow {
  WallTime time;
  Severity severity = Severity::Info;
  std::string what;  // "condition", "over", "event", "action", "kernel"
  std::string device;
  std::string text;
};

// Two kernels of one GPU under one runtime, and so on: how the canaries fare.
struct Cell {
  std::size_t runs = 0;
  double slower = 1;   // of the metric that fares worst, against the best kernel of the row: median over median
  std::string metric;  // which; "triad bandwidth"
  std::string bad;     // "wrong", "failed", "timeout" …: what no ratio says; empty: none
};
struct CompatibilityRow {
  std::string device;  // PCI address
  std::string runtime;
  std::map<std::string, Cell> kernels;  // by release
};

struct RatioPoint {
  WallTime time;
  double slower = 1;
};
struct RatioCurve {
  std::string device;  // PCI address
  std::string name;    // "triad bandwidth"
  std::vector<RatioPoint> points;
};

struct KernelChange {
  WallTime time;  // of the first canary under it
  std::string device;
  std::string before, after;
};

struct Report {
  WallTime made, since;
  Machine machine;
  std::vector<Condition> past;
  std::vector<Event> events;
  std::vector<dbus::LooseObject> others;  // actions and the kernel, where the daemon has them
  std::vector<Series> series;             // by device, then by metric
  std::vector<canary::Measurement> measurements;
  // What follows from them.
  std::vector<TimelineRow> timeline;  // newest first
  std::vector<CompatibilityRow> compatibility;
  std::vector<RatioCurve> ratios;
  std::vector<KernelChange> changes;
  std::vector<std::string> notes;  // what could not be had, and why
};

// Fills the second half from the first.
void conclude(Report& report);

// The plots of a report: readings in history that people ask for.
std::vector<const ReadingInfo*> report_metrics();

std::string report_html(const Report& report);
Json report_json(const Report& report);
Page report_page(const Report& report, const Terminal& terminal);  // in a terminal

// A curve as SVG: the mean as a line on a band from the least to the greatest; marks where the kernel changed.
std::string svg_of(const std::vector<Series>& series, const std::vector<KernelChange>& changes, const std::string& id);
std::string svg_of(const std::vector<RatioCurve>& curves, WallTime since, WallTime until,
                   const std::vector<KernelChange>& changes, const std::string& id);
std::string html_text(std::string_view text);  // escaped, made safe

// Replaces what names a person, a host or a single card, as whole words.
class Masks {
 public:
  void add(const std::string& secret, const std::string& instead);
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;  // longest first
};
// Of every device that the report names.
void add_devices(Masks& masks, const Report& report);

}  // namespace gpuhealth::cli
