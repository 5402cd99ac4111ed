// SPDX-License-Identifier: Apache-2.0
#include "health/canary_watch.hpp"

#include <algorithm>

namespace gpuhealth::health {
namespace {

using canary::Measurement;
using canary::stats::Finding;
using canary::stats::Level;

constexpr std::size_t kRemembered = 60;  // two runs and more of the fast tier

std::string key_of(const Finding& f) {
  return f.canary + " " + f.metric + " " + std::string(canary::stats::to_string(f.kind));
}

// What a cause is never found from need not be kept.
Measurement trimmed(const Measurement& m) {
  Measurement out = m;
  out.reason.clear();
  out.environment.clear();
  out.device_name.clear();
  return out;
}

std::string ratio_text(double ratio) {
  std::string text = std::to_string(ratio);
  return text.substr(0, text.find('.') + 3) + "x";
}

}  // namespace

// A probe without a runtime says nothing of the runtime: what both know must be alike. Where a line lists no software
// its epoch must do.
bool CanaryWatch::is_other_software(const Memory& memory, const Measurement& m) {
  if (m.software.empty() || memory.software.empty()) return m.epoch != memory.epoch;
  return std::ranges::any_of(m.software, [&](const auto& field) {
    const auto it = memory.software.find(field.first);
    return it != memory.software.end() && it->second != field.second;
  });
}

void CanaryWatch::remember(Memory& memory, const Measurement& m) {
  const bool other = is_other_software(memory, m);
  if (other) memory.software.clear();
  memory.software.insert(m.software.begin(), m.software.end());
  if (other) {
    memory.earlier = memory.first;
    memory.first.clear();
    memory.latest.clear();
  }
  memory.epoch = m.epoch;
  if (memory.first.size() < kRemembered) memory.first.push_back(trimmed(m));
  memory.latest.push_back(trimmed(m));
  if (memory.latest.size() > kRemembered) memory.latest.pop_front();
}

CauseVerdict CanaryWatch::cause_of(const Memory& memory, const Finding& finding) {
  std::vector<Measurement> after;
  for (const auto& m : memory.latest) {
    if (m.time >= finding.since) after.push_back(m);
  }
  if (after.empty()) after.assign(memory.latest.begin(), memory.latest.end());
  std::vector<Measurement> before;
  for (const auto& m : finding.good_epoch.empty() ? memory.first : memory.earlier) {
    if (m.time < finding.since) before.push_back(m);
  }
  auto verdict = find_cause({before, after, std::nullopt});
  if (!finding.changed.empty()) verdict.changed = finding.changed;
  return verdict;
}

CanaryOutcome CanaryWatch::observe(const Measurement& m) {
  auto& memory = devices_[m.device];
  remember(memory, m);
  auto seen = judge_.observe(m);
  CanaryOutcome out;
  out.next_after_s = seen.next_after_s;
  out.y = seen.y;
  out.judged = seen.judged;
  for (auto& f : seen.findings) {
    if (f.changed.empty() && !f.good_epoch.empty()) f.changed.emplace_back("epoch", f.good_epoch + " -> " + f.epoch);
    CanaryFinding one;
    one.finding = std::move(f);
    if (one.finding.level == Level::Recovered) {
      memory.open.erase(key_of(one.finding));
    } else {
      one.cause = cause_of(memory, one.finding);
      one.environment = m.environment;
      memory.open[key_of(one.finding)] = one;
    }
    out.findings.push_back(std::move(one));
  }
  return out;
}

void CanaryWatch::reset(std::string_view device, std::string_view canary) {
  judge_.reset(device, canary);
  if (const auto it = devices_.find(device); it != devices_.end() && canary.empty()) devices_.erase(it);
}

std::vector<CanaryFinding> CanaryWatch::open() const {
  std::vector<CanaryFinding> out;
  for (auto& f : judge_.open()) {
    CanaryFinding one;
    if (const auto device = devices_.find(f.device); device != devices_.end()) {
      if (const auto known = device->second.open.find(key_of(f)); known != device->second.open.end())
        one = known->second;
    }
    one.finding = std::move(f);
    out.push_back(std::move(one));
  }
  return out;
}

CanaryCondition condition_of(canary::stats::FindingKind kind) {
  using canary::stats::FindingKind;
  switch (kind) {
    case FindingKind::Stall:
      return {ConditionType::HostCopyStall, Severity::Critical};
    case FindingKind::Collapse:
    case FindingKind::Serialized:
      return {ConditionType::ThroughputCollapse, Severity::Critical};
    case FindingKind::Wrong:
      return {ConditionType::WrongResults, Severity::Critical};
    case FindingKind::Failing:
      return {ConditionType::CanaryFailing, Severity::Warning};
    case FindingKind::Regression:
    case FindingKind::Drift:
    case FindingKind::Floor:
    case FindingKind::FellBack:
      break;
  }
  return {ConditionType::PerformanceDrift, Severity::Warning};
}

std::vector<Evidence> evidence_of(const CanaryFinding& f) {
  std::vector<Evidence> out = {{"canary", f.finding.canary + " " + f.finding.metric},
                               {"finding", std::string(to_string(f.finding.kind))},
                               {"cause", f.cause.text}};
  if (f.finding.ratio) out.push_back({"slower", ratio_text(*f.finding.ratio)});
  for (const auto& [field, change] : f.cause.changed.empty() ? f.finding.changed : f.cause.changed)
    out.push_back({"changed: " + field, change});
  for (const auto& sign : f.cause.evidence) out.push_back({"sign", sign});
  for (const auto& [name, value] : f.environment) out.push_back({"work-around set for users", name + "=" + value});
  return out;
}

}  // namespace gpuhealth::health
