// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <tuple>

#include "cli/numbers.hpp"
#include "dbus/names.hpp"

namespace gpuhealth::cli {
namespace {

using canary::Measurement;
using canary::Status;

constexpr std::size_t kMostRows = 400;

WallTime time_of(const Measurement& m) {
  return wall_from_microseconds(static_cast<std::int64_t>(m.time * 1e6));
}

std::string field(const Measurement& m, const char* name) {
  const auto it = m.software.find(name);
  return it == m.software.end() ? std::string() : it->second;
}

std::string name_of(const Measurement& m) {
  return m.canary + " " + m.metric;
}

// What is a speed. Host copies have no baseline (each run is held against its own control), and a time all the same.
bool judged(const Measurement& m) {
  const auto* row = canary::find_canary(m.canary, m.metric);
  const bool compared = row == nullptr || row->sigma_floor > 0 || row->metric == "worst";
  return compared && m.status == Status::Ok && m.value && *m.value > 0 && std::isfinite(*m.value);
}

// Up to here two kernels are the same: three times what the canary is noisy by, and never less than 5 %.
double same_up_to(const Measurement& m) {
  const auto* row = canary::find_canary(m.canary, m.metric);
  if (row != nullptr && row->sigma_floor <= 0) return 1.5;
  return 1 + std::max(0.05, row == nullptr ? 0 : 3 * row->sigma_floor);
}

// Time, whichever way the metric counts.
double time_taken(const Measurement& m) {
  return m.better == canary::Better::Higher ? 1 / *m.value : *m.value;
}

void add_conditions(Report& r) {
  std::set<std::string> seen;
  const auto add = [&](const Condition& c) {
    if (!seen.insert(c.id).second) return;
    const std::string title = std::string(info(c.type).title);
    if (c.since >= r.since)
      r.timeline.push_back(
          {c.since, c.severity, "condition", c.device_label, title + (c.detail.empty() ? "" : ": " + c.detail)});
    if (c.state == ConditionState::Cleared && c.cleared >= r.since)
      r.timeline.push_back({c.cleared, Severity::Info, "over", c.device_label, title + ": over"});
  };
  for (const auto& c : r.machine.conditions) add(c);
  for (const auto& c : r.past) add(c);
}

void add_actions(Report& r) {
  for (const auto& o : r.others) {
    if (o.interface != dbus::kActionInterface) continue;
    const auto& p = o.properties;
    auto us = dbus::number(p, "Acted");
    if (us <= 0) us = dbus::number(p, "Detected");
    const auto time = wall_from_microseconds(static_cast<std::int64_t>(us));
    if (time < r.since) continue;
    std::string said = dbus::text(p, "Text").empty() ? dbus::text(p, "Kind") : dbus::text(p, "Text");
    if (!dbus::text(p, "State").empty()) said += " (" + dbus::text(p, "State") + ")";
    if (!dbus::text(p, "Reason").empty()) said += ": " + dbus::text(p, "Reason");
    r.timeline.push_back({time, Severity::Info, "action", dbus::text(p, "DeviceLabel"), said});
  }
}

// Which canaries ran under which kernel, oldest first; the changes of each device.
void add_changes(Report& r) {
  std::map<std::string, std::string> kernel;
  for (const auto& m : r.measurements) {
    const auto now = field(m, "kernel");
    if (now.empty()) continue;
    auto& before = kernel[m.device];
    if (!before.empty() && before != now && time_of(m) >= r.since) {
      r.changes.push_back({time_of(m), m.device, before, now});
      r.timeline.push_back({time_of(m), Severity::Info, "kernel", m.device, "kernel " + before + " -> " + now});
    }
    before = now;
  }
}

void add_ratios(Report& r) {
  std::map<std::tuple<std::string, std::string>, std::vector<const Measurement*>> keys;
  for (const auto& m : r.measurements) {
    if (judged(m)) keys[{m.device, name_of(m)}].push_back(&m);
  }
  for (const auto& [key, runs] : keys) {
    // What was normal before: the median under the first software, of the whole file.
    std::vector<double> first;
    for (const auto* m : runs) {
      if (m->epoch == runs.front()->epoch) first.push_back(time_taken(*m));
    }
    const double reference = canary::stats::median(first);
    RatioCurve curve{std::get<0>(key), std::get<1>(key), {}};
    for (const auto* m : runs) {
      if (time_of(*m) >= r.since) curve.points.push_back({time_of(*m), time_taken(*m) / reference});
    }
    if (!curve.points.empty()) r.ratios.push_back(std::move(curve));
  }
}

struct Metric {
  std::map<std::string, std::vector<double>> kernels;  // times
  double same_up_to = 1;
};
using Times = std::map<std::string, Metric>;

void compare_kernels(CompatibilityRow& row, const Times& times) {
  for (const auto& [name, metric] : times) {
    double best = HUGE_VAL;
    for (const auto& [kernel, values] : metric.kernels) best = std::min(best, canary::stats::median(values));
    for (const auto& [kernel, values] : metric.kernels) {
      auto& cell = row.kernels[kernel];
      const double slower = canary::stats::median(values) / best;
      const bool counts = slower > metric.same_up_to && slower > cell.slower;
      if (counts) cell.slower = slower;
      if (counts || cell.metric.empty()) cell.metric = name;
    }
  }
}

void add_compatibility(Report& r) {
  std::map<std::pair<std::string, std::string>, std::pair<CompatibilityRow, Times>> rows;
  for (const auto& m : r.measurements) {
    const auto kernel = field(m, "kernel");
    if (kernel.empty() || m.status == Status::Unsupported || m.status == Status::Busy) continue;
    const auto runtime = field(m, "runtime").empty() ? m.backend : field(m, "runtime");
    auto& [row, times] = rows[{m.device, runtime}];
    row.device = m.device;
    row.runtime = runtime;
    auto& cell = row.kernels[kernel];
    ++cell.runs;
    if (m.status != Status::Ok && cell.bad != "wrong") cell.bad = std::string(to_string(m.status));
    if (!judged(m)) continue;
    times[name_of(m)].same_up_to = same_up_to(m);
    times[name_of(m)].kernels[kernel].push_back(time_taken(m));
  }
  for (auto& [key, value] : rows) {
    compare_kernels(value.first, value.second);
    r.compatibility.push_back(std::move(value.first));
  }
}

}  // namespace

std::vector<const ReadingInfo*> report_metrics() {
  std::vector<const ReadingInfo*> out;
  for (const auto id : {ReadingId::TemperatureEdge, ReadingId::TemperatureJunction, ReadingId::TemperatureMemory,
                        ReadingId::PowerAverage, ReadingId::PowerInput, ReadingId::PowerCap, ReadingId::ClockGfx,
                        ReadingId::ClockMemory})
    out.push_back(find_reading(id));
  return out;
}

void conclude(Report& r) {
  std::ranges::sort(r.measurements, {},
                    [](const Measurement& m) { return std::tie(m.time, m.device, m.canary, m.metric); });
  add_conditions(r);
  add_actions(r);
  add_changes(r);
  add_ratios(r);
  add_compatibility(r);
  for (const auto& e : r.events) {
    // Conditions stand there already, with more.
    if (!e.type.starts_with("condition.")) r.timeline.push_back({e.time, e.severity, "event", e.device, e.text});
  }
  for (auto& row : r.timeline) {
    const auto it = std::ranges::find(r.machine.devices, row.device, &dbus::DeviceView::id);
    if (it != r.machine.devices.end()) row.device = label(*it);
  }
  std::ranges::sort(r.timeline, std::ranges::greater{},
                    [](const TimelineRow& row) { return std::tie(row.time, row.text); });
  if (r.timeline.size() > kMostRows) {
    r.notes.push_back("The timeline shows the last " + std::to_string(kMostRows) + " of " +
                      std::to_string(r.timeline.size()) + " rows.");
    r.timeline.resize(kMostRows);
  }
}

void Masks::add(const std::string& secret, const std::string& instead) {
  if (secret.size() < 3) return;  // would hit half of all words
  const auto longer = std::ranges::find_if(rows_, [&](const auto& row) { return row.first.size() < secret.size(); });
  if (std::ranges::find(rows_, secret, [](const auto& row) { return row.first; }) == rows_.end())
    rows_.insert(longer, {secret, instead});
}

std::string Masks::apply(std::string_view text) const {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto fits = [&](std::string_view secret, std::size_t at) {
    if (text.substr(at, secret.size()) != secret) return false;
    const auto end = at + secret.size();
    return (at == 0 || !word(text[at - 1])) && (end == text.size() || !word(text[end]));
  };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto row = std::ranges::find_if(rows_, [&](const auto& r) { return fits(r.first, at); });
    if (row == rows_.end()) {
      out += text[at++];
    } else {
      out += row->second;
      at += row->first.size();
    }
  }
  return out;
}

void add_devices(Masks& masks, const Report& report) {
  int number = 0;
  std::set<std::string> seen;
  const auto add = [&](const std::string& id) {
    if (id.empty() || !seen.insert(id).second) return;
    const auto name = std::to_string(++number);
    const auto dash = id.find('-');
    const auto kind = id.substr(0, dash);
    if (dash == std::string::npos || (kind != "uid" && kind != "serial")) return;  // an address names no single card
    masks.add(id, kind + "-card" + name);
    masks.add(id.substr(dash + 1), "card" + name);
  };
  for (const auto& d : report.machine.devices) {
    add(d.id);
    if (!d.unique_id.empty()) masks.add(d.unique_id, "card" + std::to_string(number));
  }
  for (const auto& c : report.machine.conditions) add(c.device);
  for (const auto& c : report.past) add(c.device);
  for (const auto& e : report.events) add(e.device);
  for (const auto& o : report.others) add(dbus::text(o.properties, "Device"));
}

}  // namespace gpuhealth::cli
