// SPDX-License-Identifier: Apache-2.0
// Held by a power limit that is lower than the card's default. A card at its default limit under load does what it was
// designed to do. Where the driver takes the default from the firmware at its start (Navi 2x, MI), a limit lowered
// before that looks like the default: then nothing is raised.
#include <cmath>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

Verdict held(const Look& look, double cap, double cap_default, double power) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::Bad;
  verdict.detail = "The power limit is " + text_of(cap, Unit::Watt) + ", the card's default " +
                   text_of(cap_default, Unit::Watt) + "; under load the GPU draws " + text_of(power, Unit::Watt) + ".";
  verdict.evidence = {evidence_of(R::PowerCap, cap), evidence_of(R::PowerCapDefault, cap_default),
                      evidence_of(number(look.sample, R::PowerInput) ? R::PowerInput : R::PowerAverage, power),
                      evidence_of(R::UtilizationGfx, look.load.busy.value_or(0))};
  const auto reasons = look.sample.throttle.of_kind(ThrottleKind::Power);
  for (const auto& row : all_throttle_reasons())
    if (reasons.contains(row.reason)) verdict.evidence.push_back({std::string(row.name), std::string(row.text)});
  return verdict;
}

class PowerThrottling final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& t = look.thresholds;
    if (is_apu(look.device.family)) return Verdict::unknown();  // its limit is shared with the CPU, and meant to be set
    const auto cap = number(look.sample, R::PowerCap);
    const auto cap_default = number(look.sample, R::PowerCapDefault);
    if (!cap || !cap_default || *cap <= 0 || *cap_default <= 0) return Verdict::unknown();
    if (*cap >= *cap_default * (1 - t.power_throttling_lowered / 100)) return Verdict::good();
    constexpr double kRounding = 1;  // W, power1_cap is rounded to whole watts
    if (look.own_cap && std::abs(*cap - *look.own_cap) <= kRounding) return Verdict::good();  // an action wants it so

    const auto power = power_now(look.sample);
    if (!power || !look.load.busy || *look.load.busy < t.busy_percent) return Verdict::unknown();
    const bool bits = look.sample.throttle_known && !look.sample.throttle.of_kind(ThrottleKind::Power).empty();
    if (*power >= *cap * t.power_throttling_at_cap / 100) return held(look, *cap, *cap_default, *power);
    if (*power < *cap * t.power_throttling_off_cap / 100) return Verdict::good();  // bits alone flicker (MangoHud 748)
    return bits ? held(look, *cap, *cap_default, *power) : Verdict::unknown();
  }
};

}  // namespace

std::unique_ptr<Detector> make_power_throttling() {
  return std::make_unique<PowerThrottling>();
}

}  // namespace gpuhealth::health
