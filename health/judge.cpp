// SPDX-License-Identifier: Apache-2.0
#include "health/detector.hpp"
#include "health/engine.hpp"

namespace gpuhealth::health {

std::vector<Condition> judge_once(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds) {
  std::vector<Condition> out;
  const bool awake = sample.power == PowerState::Active || sample.power == PowerState::Unknown;
  const auto load = awake ? load_at_once(device, sample, thresholds) : Load{};
  for (const auto& row : all_detectors()) {
    if (!row.one_look_suffices || (!awake && row.when_asleep != WhenAsleep::Judge)) continue;
    const auto detector = row.make();
    auto verdict = detector->judge({device, sample, thresholds, load, false, true});
    if (verdict.kind != Verdict::Kind::Bad) continue;
    Condition condition;
    condition.type = row.type;
    condition.device = device.id();
    condition.id = condition_id(row.type, condition.device, sample.time.wall);
    condition.device_label = label_of(device);
    condition.severity = verdict.severity;
    condition.since = condition.last_seen = sample.time.wall;
    condition.detail = std::move(verdict.detail);
    condition.evidence = std::move(verdict.evidence);
    out.push_back(std::move(condition));
  }
  return out;
}

}  // namespace gpuhealth::health
