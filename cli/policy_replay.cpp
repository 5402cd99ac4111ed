// SPDX-License-Identifier: Apache-2.0
// Recorded canary results through the statistics and then through policies: what would these have done?
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/policy.hpp"
#include "health/canary_watch.hpp"

namespace gpuhealth::cli {
namespace {

using canary::Measurement;
using canary::stats::Level;

WallTime wall_of(double seconds) {
  return wall_from_microseconds(std::llround(std::clamp(seconds, -1e9, 1e11) * 1e6));
}

class Player {
 public:
  explicit Player(const policy::PolicySet& set) : set_(set) { snapshot_.machine.boot_id = "recorded"; }

  void observe(const Measurement& m, const std::vector<health::CanaryFinding>& findings) {
    policy::DeviceState& device = device_of(m);
    const WallTime now = wall_of(m.time);
    if (const auto kernel = m.software.find("kernel"); kernel != m.software.end())
      snapshot_.machine.kernel = kernel->second;
    for (const auto& f : findings) take(device, f, now);
    step(now);
  }

  PolicyReplay out;

 private:
  policy::DeviceState& device_of(const Measurement& m) {
    const auto at = std::ranges::find(snapshot_.devices, m.device, &policy::DeviceState::id);
    if (at != snapshot_.devices.end()) return *at;
    policy::DeviceState device;
    device.id = m.device;
    device.label = m.device_name;
    device.busy = false;  // results that are judged come from GPUs that nobody else used
    if (!m.device_name.empty()) device.skus.push_back(m.device_name);
    snapshot_.devices.push_back(std::move(device));
    return snapshot_.devices.back();
  }

  void take(policy::DeviceState& device, const health::CanaryFinding& finding, WallTime now) {
    const auto& f = finding.finding;
    std::erase_if(device.canaries,
                  [&](const policy::CanaryFact& c) { return c.canary == f.canary && c.finding == f.kind; });
    const auto as = health::condition_of(f.kind);
    if (f.level == Level::Confirmed) {
      device.canaries.push_back({f.canary, f.kind, f.ratio, f.detail});
      confirm(device, as, finding, now);
      return;
    }
    if (f.level != Level::Recovered) return;
    const bool others = std::ranges::any_of(
        device.canaries, [&](const policy::CanaryFact& c) { return health::condition_of(c.finding).type == as.type; });
    if (others) return;
    if (std::erase_if(device.conditions, [&](const Condition& c) { return c.type == as.type; }) > 0)
      snapshot_.events.push_back({now, "condition.cleared", device.id, as.type});
  }

  void confirm(policy::DeviceState& device, const health::CanaryCondition& as, const health::CanaryFinding& finding,
               WallTime now) {
    if (std::ranges::any_of(device.conditions, [&](const Condition& c) { return c.type == as.type; })) return;
    Condition c;
    c.id = condition_id(as.type, device.id, now);
    c.type = as.type, c.severity = as.severity, c.state = ConditionState::Confirmed;
    c.device = device.id, c.device_label = device.label, c.since = c.last_seen = now;
    c.detail = finding.finding.detail;
    c.evidence = health::evidence_of(finding);
    device.conditions.push_back(std::move(c));
    snapshot_.events.push_back({now, "condition.confirmed", device.id, as.type});
  }

  // Between two results nothing is known to change but the time: rules with `for` are asked each minute.
  void step(WallTime now) {
    constexpr Duration kStep = std::chrono::minutes(1), kGap = std::chrono::hours(24);
    if (last_ && now > *last_ && now - *last_ < kGap)
      for (WallTime t = *last_ + kStep; t < now; t += kStep) evaluate_at(t);
    evaluate_at(last_ ? std::max(now, *last_) : now);
    last_ = last_ ? std::max(now, *last_) : now;
  }

  void evaluate_at(WallTime now) {
    if (!first_) first_ = now;
    auto evaluation = policy::evaluate(snapshot_, set_, std::move(state_), {now, {(now - *first_).count()}});
    state_ = std::move(evaluation.state);
    for (auto& d : evaluation.decisions) out.decisions.push_back({now, std::move(d)});
  }

  const policy::PolicySet& set_;
  policy::Snapshot snapshot_;
  policy::State state_;
  std::optional<WallTime> first_, last_;
};

}  // namespace

PolicyReplay replay_policies(const ResultFile& file, const policy::PolicySet& set) {
  health::CanaryWatch watch;
  Player player(set);
  for (const auto& entry : file.entries) {
    if (const auto* reset = std::get_if<BaselineReset>(&entry)) {
      watch.reset(reset->device, reset->canary);
      continue;
    }
    const auto& m = std::get<Measurement>(entry);
    player.observe(m, watch.observe(m).findings);
  }
  return std::move(player.out);
}

Page render_policy_replay(const PolicyReplay& replay, const Terminal& terminal) {
  Page page;
  page.line({{"What the policies would have decided", Tone::Heading}});
  if (replay.decisions.empty()) page.line({{"  nothing"}});
  for (const auto& entry : replay.decisions) {
    const auto& d = entry.decision;
    page.line({{"  " + policy::text_of(entry.time) + "  "},
               {std::string(to_string(d.outcome)) +
                    (d.block == policy::Block::None ? "" : " by " + std::string(to_string(d.block))),
                Tone::Heading},
               {"  " + d.policy + "/" + d.rule + "  " + d.device}});
    for (const auto& a : d.actions) page.line({{"      " + policy::text_of(a)}});
    page.paragraph({d.reason, Tone::Note}, 6, terminal.columns);
  }
  return page;
}

Json json_policy_replay(const PolicyReplay& replay) {
  Json out = Json::array();
  for (const auto& entry : replay.decisions) {
    Json one = {{"time", time_or_null(entry.time)}};
    one.update(json_decision(entry.decision));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace gpuhealth::cli
