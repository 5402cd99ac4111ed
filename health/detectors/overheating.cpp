// SPDX-License-Identifier: Apache-2.0
// A temperature at the limit that the card itself states. A card that states no believable limit is not judged.
#include <array>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/limits.hpp"

namespace gpuhealth::health {
namespace {

std::string sentence(const Heat& heat) {
  std::string out = "The " + std::string(heat.sensor->name) + " temperature is " + text_of(heat.value, Unit::Celsius) +
                    "; its critical limit is " + text_of(heat.critical, Unit::Celsius);
  if (heat.emergency)
    out += " and at " + text_of(*heat.emergency, Unit::Celsius) + " the driver powers the machine off";
  return out + ".";
}

void add_evidence(Verdict& verdict, const Heat& heat) {
  verdict.evidence.push_back(evidence_of(heat.sensor->value, heat.value));
  verdict.evidence.push_back(evidence_of(heat.sensor->critical, heat.critical));
  if (heat.emergency) verdict.evidence.push_back(evidence_of(heat.sensor->emergency, *heat.emergency));
}

class Overheating final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& t = look.thresholds;
    Verdict bad;
    bool all_cool = true;
    bool any = false;
    std::optional<Heat> worst;
    for (const auto& sensor : heat_sensors()) {
      const auto state = heat_of(look.sample, sensor, t);
      if (state.hidden) all_cool = false;  // a sensor with a limit that cannot be read now proves nothing
      if (!state.heat) continue;
      any = true;
      const auto& heat = *state.heat;
      if (heat.headroom() > t.overheating_margin_c + t.overheating_clear_below_c) continue;
      all_cool = false;
      if (heat.headroom() > t.overheating_margin_c) continue;
      add_evidence(bad, heat);
      if (heat.emergency && heat.value >= *heat.emergency - t.overheating_urgent_c) bad.urgent = true;
      if (!worst || heat.headroom() < worst->headroom()) worst = heat;
    }
    if (worst) {
      bad.kind = Verdict::Kind::Bad;
      bad.severity = Severity::Critical;
      bad.detail = sentence(*worst);
      return bad;
    }
    return any && all_cool ? Verdict::good() : Verdict::unknown();
  }
};

}  // namespace

std::unique_ptr<Detector> make_overheating() {
  return std::make_unique<Overheating>();
}

}  // namespace gpuhealth::health
