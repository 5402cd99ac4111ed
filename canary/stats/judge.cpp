// SPDX-License-Identifier: Apache-2.0
#include "canary/stats/judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>

namespace gpuhealth::canary::stats {
namespace {

constexpr std::array kKinds = std::to_array<std::pair<FindingKind, std::string_view>>({
    {FindingKind::Stall, "stall"},
    {FindingKind::Collapse, "collapse"},
    {FindingKind::Regression, "regression"},
    {FindingKind::Drift, "drift"},
    {FindingKind::Serialized, "serialized"},
    {FindingKind::Wrong, "wrong"},
    {FindingKind::Failing, "failing"},
    {FindingKind::Floor, "floor"},
    {FindingKind::FellBack, "fell-back"},
});

constexpr int kFailingRuns = 3;
constexpr int kSerializedRuns = 3;
constexpr double kFloorShare = 0.5;
constexpr double kStallAgain = 16;  // two runs at least 15 s apart

std::string text_of(const char* format, double a, double b = 0) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), format, a, b);
  return text.data();
}

std::optional<double> note_number(const Measurement& m, const char* name) {
  const auto it = m.notes.find(name);
  if (it == m.notes.end()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(it->second.c_str(), &end);
  if (end == it->second.c_str() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

Finding recovered(Finding open, double time) {
  open.level = Level::Recovered;
  open.time = time;
  open.detail = "back to normal";
  return open;
}

std::string_view to_string(FindingKind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& row) { return row.first; })->second;
}

std::string_view to_string(Level level) {
  switch (level) {
    case Level::Suspect:
      return "suspect";
    case Level::Confirmed:
      return "confirmed";
    case Level::Recovered:
      break;
  }
  return "recovered";
}

std::vector<std::pair<std::string, std::string>> differences(const std::map<std::string, std::string>& before,
                                                             const std::map<std::string, std::string>& after) {
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> names;
  for (const auto& [name, value] : before) names.insert(name);
  for (const auto& [name, value] : after) names.insert(name);
  const auto value_in = [](const auto& map, const std::string& name) {
    const auto it = map.find(name);
    return it == map.end() ? std::string("none") : it->second;
  };
  for (const auto& name : names) {
    const auto a = value_in(before, name);
    const auto b = value_in(after, name);
    if (a != b) out.emplace_back(name, a + " -> " + b);
  }
  return out;
}

// What is kept of a device beside its metrics' baselines. Rules that need no baseline live here.
struct Judge::Device {
  struct Key {
    KeyJudge judge;
    Measurement names;
  };
  struct Rule {
    Stall stall;
    std::map<FindingKind, Finding> open;
    int failing = 0;
    int serialized = 0;
    bool seen_parallel = false;
    std::string serialized_epoch;
    double since = 0;
    // The epoch in which this canary last behaved, and what the software was.
    std::string good_epoch;
    std::map<std::string, std::string> good_software;
    std::optional<double> fraction;  // overlap's first line; stretch is its second
    double fraction_time = 0;
  };
  std::map<std::pair<std::string, std::string>, Key> keys;
  std::map<std::string, Rule> rules;  // by canary

  void tell(Outcome& out, Rule& rule, const Measurement& m, FindingKind kind, Level level, double since,
            std::optional<double> ratio, std::string detail);
  static void end(Outcome& out, Rule& rule, const Measurement& m, FindingKind kind);
  void stall(Outcome& out, Rule& rule, const Measurement& m);
  void overlap(Outcome& out, Rule& rule, const Measurement& m);
  void status(Outcome& out, Rule& rule, const Measurement& m);
  void floor(Outcome& out, Rule& rule, const Measurement& m);
};

void Judge::Device::tell(Outcome& out, Rule& rule, const Measurement& m, FindingKind kind, Level level, double since,
                         std::optional<double> ratio, std::string detail) {
  const auto it = rule.open.find(kind);
  if (it != rule.open.end() && (it->second.level == level || it->second.level == Level::Confirmed)) {
    it->second.ratio = ratio;
    return;
  }
  Finding f{
      kind,  level,   m.device, m.canary, m.metric,         m.time, it == rule.open.end() ? since : it->second.since,
      ratio, m.epoch, "",       {},       std::move(detail)};
  if (!rule.good_epoch.empty() && rule.good_epoch != m.epoch) {
    f.good_epoch = rule.good_epoch;
    f.changed = differences(rule.good_software, m.software);
  }
  rule.open[kind] = f;
  out.findings.push_back(std::move(f));
}

void Judge::Device::end(Outcome& out, Rule& rule, const Measurement& m, FindingKind kind) {
  const auto node = rule.open.extract(kind);
  if (node.empty()) return;
  out.findings.push_back(recovered(node.mapped(), m.time));
}

// Also of busy runs: a neighbour does not make the kernel spin for whole seconds in our own system time.
void Judge::Device::stall(Outcome& out, Rule& rule, const Measurement& m) {
  if (m.mappings.empty() || (m.status != Status::Ok && m.status != Status::Busy)) return;
  out.judged = true;
  const auto verdict = judge_mappings(m.mappings);
  const auto before = rule.stall.state();
  const auto state = rule.stall.step(m.time, verdict.stalled);
  if (state == Stall::State::Healthy) {
    end(out, rule, m, FindingKind::Stall);
    rule.good_epoch = m.epoch;
    rule.good_software = m.software;
    return;
  }
  if (before == Stall::State::Healthy) rule.since = m.time;
  if (state == Stall::State::Suspect) out.next_after_s = kStallAgain;
  tell(out, rule, m, FindingKind::Stall, state == Stall::State::Confirmed ? Level::Confirmed : Level::Suspect,
       rule.since, verdict.worst_ratio,
       text_of("every fresh mapping takes at least 900 ms a 2 MiB slot (up to %.0f ms), %.0f times its control",
               verdict.worst_ms_per_slot, verdict.worst_ratio));
}

void Judge::Device::overlap(Outcome& out, Rule& rule, const Measurement& m) {
  if (m.canary != "overlap" || m.status != Status::Ok || !m.value) return;
  if (m.metric == "fraction") {
    rule.fraction = m.value;
    rule.fraction_time = m.time;
    return;
  }
  if (m.metric != "stretch" || !rule.fraction || std::abs(m.time - rule.fraction_time) > 10) return;
  out.judged = true;
  const auto verdict = judge_overlap(*std::exchange(rule.fraction, std::nullopt), *m.value);
  if (verdict == Overlap::Parallel) {
    rule.seen_parallel = true;
    rule.serialized = 0;
    rule.good_epoch = m.epoch;
    rule.good_software = m.software;
    end(out, rule, m, FindingKind::Serialized);
    return;
  }
  if (verdict != Overlap::Serialized) {
    rule.serialized = 0;
    return;
  }
  if (rule.serialized++ == 0) rule.since = m.time;
  out.next_after_s = rule.serialized < kSerializedRuns ? std::optional(kStallAgain) : std::nullopt;
  if (rule.serialized < kSerializedRuns) return;
  // A device that has one queue was never seen otherwise: that is no fault of it.
  tell(out, rule, m, FindingKind::Serialized, rule.seen_parallel ? Level::Confirmed : Level::Suspect, rule.since,
       std::nullopt, "kernels of several queues run one after the other, and none of them is slower");
}

void Judge::Device::status(Outcome& out, Rule& rule, const Measurement& m) {
  switch (m.status) {
    case Status::Wrong:
      // One is enough: nothing but the device or its software makes bits wrong.
      tell(out, rule, m, FindingKind::Wrong, Level::Confirmed, m.time, std::nullopt,
           m.canary + " computed wrong results" + (m.reason.empty() ? "" : ": " + m.reason));
      out.judged = true;
      return;
    case Status::Failed:
    case Status::BackendFailed:
    case Status::Timeout:
    case Status::Stuck:
      if (rule.failing++ == 0) rule.since = m.time;
      if (rule.failing >= kFailingRuns || m.status == Status::Stuck)
        tell(out, rule, m, FindingKind::Failing, m.status == Status::Stuck ? Level::Confirmed : Level::Suspect,
             rule.since, std::nullopt,
             m.canary + " cannot be run (" + std::string(to_string(m.status)) + ")" +
                 (m.reason.empty() ? "" : ": " + m.reason));
      else
        out.next_after_s = 60;
      return;
    case Status::Ok:
      rule.failing = 0;
      end(out, rule, m, FindingKind::Failing);
      return;
    case Status::Unsupported:
    case Status::Busy:
      return;
  }
}

void Judge::Device::floor(Outcome& out, Rule& rule, const Measurement& m) {
  if (m.status != Status::Ok || !m.value || m.better != Better::Higher) return;
  const auto ideal = note_number(m, "ideal");
  if (!ideal || *ideal <= 0) return;
  if (*m.value < kFloorShare * *ideal) {
    tell(out, rule, m, FindingKind::Floor, Level::Suspect, m.time, *ideal / *m.value,
         text_of("%.4g where the hardware states %.4g", *m.value, *ideal));
  } else {
    end(out, rule, m, FindingKind::Floor);
  }
}

Judge::Judge() = default;
Judge::~Judge() = default;
Judge::Judge(Judge&&) noexcept = default;
Judge& Judge::operator=(Judge&&) noexcept = default;

Outcome Judge::observe(const Measurement& m) {
  auto& device = devices_[m.device];
  if (!device) device = std::make_unique<Device>();
  auto& rule = device->rules[m.canary];
  Outcome out;
  device->status(out, rule, m);
  device->stall(out, rule, m);
  device->overlap(out, rule, m);
  device->floor(out, rule, m);
  const auto* info = find_canary(m.canary, m.metric);
  // A canary of the user's own has no row here, and noise that is not known beforehand.
  const double floor = info == nullptr ? 0.02 : info->sigma_floor;
  if (floor <= 0) return out;
  auto [it, fresh] = device->keys.try_emplace({m.canary, m.metric}, Device::Key{KeyJudge(m.better, floor), {}});
  if (fresh) {
    it->second.names.device = m.device;
    it->second.names.canary = m.canary;
    it->second.names.metric = m.metric;
  }
  auto of_key = it->second.judge.observe(m);
  for (auto& f : of_key.findings) out.findings.push_back(std::move(f));
  if (of_key.next_after_s) out.next_after_s = of_key.next_after_s;
  out.y = of_key.y;
  out.judged = out.judged || of_key.judged;
  return out;
}

void Judge::reset(std::string_view device, std::string_view canary) {
  const auto it = devices_.find(device);
  if (it == devices_.end()) return;
  if (canary.empty()) {
    devices_.erase(it);
    return;
  }
  std::erase_if(it->second->keys, [&](const auto& item) { return item.first.first == canary; });
  std::erase_if(it->second->rules, [&](const auto& item) { return item.first == canary; });
}

std::vector<BaselineView> Judge::baselines() const {
  std::vector<BaselineView> out;
  for (const auto& [name, device] : devices_) {
    for (const auto& [key, value] : device->keys) value.judge.baselines(out, value.names);
  }
  return out;
}

std::vector<Finding> Judge::open() const {
  std::vector<Finding> out;
  for (const auto& [name, device] : devices_) {
    for (const auto& [canary, rule] : device->rules)
      for (const auto& [kind, finding] : rule.open) out.push_back(finding);
    for (const auto& [key, value] : device->keys)
      for (const auto& [kind, finding] : value.judge.open()) out.push_back(finding);
  }
  return out;
}

}  // namespace gpuhealth::canary::stats
