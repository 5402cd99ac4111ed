// SPDX-License-Identifier: Apache-2.0
#include "health/cause.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "canary/stats/judge.hpp"

namespace gpuhealth::health {
namespace {

using canary::Measurement;
using canary::Status;

constexpr double kSlower = 1.08;
constexpr double kLinkSlower = 0.8;
constexpr double kShare = 0.5;  // of the runs that must show a bit
constexpr double kForeignShare = 0.5;
constexpr double kSpinShare = 0.1;
constexpr double kFineControlMs = 30;  // a 4 MiB copy that is plainly healthy, with nothing to compare with
// nvml.h: nvmlClocksThrottleReason*.
constexpr unsigned long long kNvmlPower = 0x4 | 0x80;
constexpr unsigned long long kNvmlThermal = 0x20 | 0x40;

struct Need {
  Symptom sign;
  bool wanted;
};
constexpr Need yes(Symptom sign) {
  return {sign, true};
}
constexpr Need no(Symptom sign) {
  return {sign, false};
}

struct Row {
  std::string_view name, text;
  std::vector<Need> needs;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define CAUSE(id, name, text, ...) {name, text, {__VA_ARGS__}},
#include "health/causes.def"
#undef CAUSE
  };
  return table;
}

bool usable(const Measurement& m) {
  return (m.status == Status::Ok || m.status == Status::Busy) && m.value && *m.value > 0;
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return canary::stats::median(values);
}

std::optional<double> number(const Measurement& m, const char* name) {
  const auto it = m.notes.find(name);
  if (it == m.notes.end()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(it->second.c_str(), &end);
  if (end == it->second.c_str() || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

template <class Value>
std::optional<double> median_of(std::span<const Measurement> runs, std::string_view canary, Value value) {
  std::vector<double> seen;
  for (const auto& m : runs) {
    if (m.canary != canary || !usable(m) || m.status == Status::Busy) continue;  // contention is left out
    if (const auto v = value(m)) seen.push_back(*v);
  }
  return median(std::move(seen));
}

std::optional<double> time_of(const Measurement& m) {
  return m.better == canary::Better::Higher ? 1 / *m.value : *m.value;
}

// How many times slower; nothing where one side is missing.
std::optional<double> slowdown(const CauseInput& in, std::string_view canary) {
  const auto before = median_of(in.before, canary, time_of);
  const auto after = median_of(in.after, canary, time_of);
  if (!before || !after || *before <= 0) return std::nullopt;
  return *after / *before;
}

// How many times lower a note's value is beside this canary.
std::optional<double> fall(const CauseInput& in, std::string_view canary, const char* note) {
  const auto get = [&](const Measurement& m) { return number(m, note); };
  const auto before = median_of(in.before, canary, get);
  const auto after = median_of(in.after, canary, get);
  if (!before || !after) return std::nullopt;
  return *before / *after;
}

std::optional<double> greatest(std::initializer_list<std::optional<double>> values) {
  std::optional<double> out;
  for (const auto& v : values) {
    if (v && (!out || *v > *out)) out = v;
  }
  return out;
}

std::optional<bool> above(const std::optional<double>& value, double limit) {
  return value ? std::optional(*value >= limit) : std::nullopt;
}

// The share of runs whose throttle reasons name one of the bits, or the word.
std::optional<bool> throttled(std::span<const Measurement> runs, unsigned long long bits, std::string_view word) {
  int known = 0;
  int set = 0;
  for (const auto& m : runs) {
    const auto it = m.notes.find("throttle_reasons");
    if (it == m.notes.end()) continue;
    ++known;
    const bool by_bit = it->second.starts_with("0x") && (std::strtoull(it->second.c_str(), nullptr, 16) & bits) != 0;
    set += by_bit || it->second.find(word) != std::string::npos ? 1 : 0;
  }
  if (known == 0) return std::nullopt;
  return set >= kShare * known;
}

std::optional<bool> less_per_clock(const CauseInput& in, const std::optional<bool>& link_slower) {
  std::optional<double> worst;
  const auto take = [&](std::string_view canary, const char* clock) {
    const auto slower = slowdown(in, canary);
    if (!slower) return;
    const auto clock_fall = fall(in, canary, clock);
    if (!clock_fall) return;
    worst = greatest({worst, *slower / std::max(1.0, *clock_fall)});
  };
  take("fma32", "clock_gfx_mhz");
  take("mma16", "clock_gfx_mhz");
  take("triad", "clock_memory_mhz");
  take("launch_rtt", "clock_gfx_mhz");
  // Copies that are slower over a link that is not.
  const auto copies = greatest({slowdown(in, "h2d_pin"), slowdown(in, "d2h_pin")});
  if (copies && link_slower == false) worst = greatest({worst, copies});
  return above(worst, kSlower);
}

// Of the same canary, because each backend knows another part of the software.
std::optional<bool> software_changed(const CauseInput& in) {
  if (in.before.empty() || in.after.empty()) return std::nullopt;
  const auto& now = in.after.back();
  const Measurement* then = &in.before.back();
  for (const auto& m : in.before) {
    if (m.canary == now.canary && m.backend == now.backend) then = &m;
  }
  return then->epoch != now.epoch;
}

void stall_signs(const CauseInput& in, Symptoms& signs) {
  const auto put = [&](Symptom sign, std::optional<bool> value) { signs.at(static_cast<std::size_t>(sign)) = value; };
  bool any = false;
  bool stalled = false;
  double system = 0;
  double wall = 0;
  double control = 0;
  for (const auto& m : in.after) {
    if (m.mappings.empty() || !usable(m)) continue;
    any = true;
    if (!canary::stats::judge_mappings(m.mappings).stalled) continue;
    stalled = true;
    for (const auto& mapping : m.mappings) {
      system += mapping.system_ms;
      wall += mapping.ms;
      control = std::max(control, mapping.control_ms);
    }
  }
  if (!any) return;
  put(Symptom::Stalled, stalled);
  if (!stalled) return;
  // A kernel that spins takes the worker's own time; one that waits for the GPU takes none.
  // On a loaded machine the spinning gets a part of a processor only.
  put(Symptom::SystemTime, system >= kSpinShare * wall);
  const auto pinned = slowdown(in, "h2d_pin");
  put(Symptom::ControlsFine, control < kFineControlMs && (!pinned || *pinned < 1.3));
}

}  // namespace

std::string_view to_string(Symptom sign) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Symptom::Count)> kNames = {
      "slower",         "kernels slower",     "copies slower",   "less per clock or link",
      "clock lower",    "thermal throttling", "power limited",   "link slower",
      "foreign client", "software changed",   "fleet slower",    "host copy stalls",
      "controls fine",  "kernel time",        "buffers evicted", "wrong results"};
  return kNames.at(static_cast<std::size_t>(sign));
}

Symptoms symptoms_of(const CauseInput& in) {
  Symptoms signs;
  const auto put = [&](Symptom sign, std::optional<bool> value) { signs.at(static_cast<std::size_t>(sign)) = value; };
  const auto kernels = greatest({slowdown(in, "fma32"), slowdown(in, "mma16"), slowdown(in, "triad"),
                                 slowdown(in, "gather"), slowdown(in, "launch_rtt"), slowdown(in, "chain")});
  const auto copies = greatest({slowdown(in, "h2d_pin"), slowdown(in, "d2h_pin")});
  put(Symptom::KernelsSlower, above(kernels, kSlower));
  put(Symptom::CopiesSlower, above(copies, kSlower));
  put(Symptom::Slower, above(greatest({kernels, copies, slowdown(in, "h2d_anon")}), kSlower));
  put(Symptom::ClockLower, above(greatest({fall(in, "fma32", "clock_gfx_mhz"), fall(in, "mma16", "clock_gfx_mhz"),
                                           fall(in, "triad", "clock_memory_mhz")}),
                                 kSlower));
  put(Symptom::ThermalBits, throttled(in.after, kNvmlThermal, "thermal"));
  put(Symptom::PowerBits, throttled(in.after, kNvmlPower, "power"));
  const auto link =
      greatest({fall(in, "h2d_pin", "link_negotiated_gb_s"), fall(in, "d2h_pin", "link_negotiated_gb_s")});
  put(Symptom::LinkSlower, above(link, 1 / kLinkSlower));
  put(Symptom::LessPerClock, less_per_clock(in, signs.at(static_cast<std::size_t>(Symptom::LinkSlower))));
  if (!in.after.empty()) {
    const auto busy = std::ranges::count(in.after, Status::Busy, &Measurement::status);
    put(Symptom::Foreign, static_cast<double>(busy) >= kForeignShare * static_cast<double>(in.after.size()));
    put(Symptom::Wrong, std::ranges::any_of(in.after, [](const auto& m) { return m.status == Status::Wrong; }));
    put(Symptom::Evicted, std::ranges::any_of(in.after, [](const auto& m) { return m.notes.contains("evicted"); }));
    put(Symptom::SoftwareChanged, software_changed(in));
  }
  put(Symptom::FleetSlower, in.fleet_slower);
  stall_signs(in, signs);
  return signs;
}

CauseVerdict attribute(const Symptoms& signs) {
  CauseVerdict out;
  const Row* best = nullptr;
  for (const auto& row : rows()) {
    const auto unmet = std::ranges::find_if(row.needs, [&](const Need& need) {
      return signs.at(static_cast<std::size_t>(need.sign)) != std::optional(need.wanted);
    });
    if (unmet == row.needs.end()) {
      if (best == nullptr || row.needs.size() > best->needs.size()) best = &row;
      continue;
    }
    const bool known = signs.at(static_cast<std::size_t>(unmet->sign)).has_value();
    out.against.emplace_back(row.name, std::string(known ? (unmet->wanted ? "not: " : "") : "not known: ") +
                                           std::string(to_string(unmet->sign)));
  }
  // Whoever else was on the GPU: no number of such a run says anything of the GPU but a wrong or a stalled one.
  const auto holds = [&](Symptom sign) { return signs.at(static_cast<std::size_t>(sign)) == std::optional(true); };
  if (best != nullptr && holds(Symptom::Foreign) && !holds(Symptom::Wrong) && !holds(Symptom::Stalled))
    best = rows().data();
  if (holds(Symptom::Wrong)) best = &rows().at(1);
  if (best == nullptr) return out;
  out.name = best->name;
  out.text = best->text;
  for (const auto& need : best->needs)
    out.evidence.push_back((need.wanted ? "" : "not ") + std::string(to_string(need.sign)));
  return out;
}

CauseVerdict find_cause(const CauseInput& input) {
  auto out = attribute(symptoms_of(input));
  if (!input.before.empty() && !input.after.empty())
    out.changed = canary::stats::differences(input.before.back().software, input.after.back().software);
  return out;
}

std::vector<CauseInfo> all_causes() {
  std::vector<CauseInfo> out;
  for (const auto& row : rows()) out.push_back({row.name, row.text});
  return out;
}

}  // namespace gpuhealth::health
