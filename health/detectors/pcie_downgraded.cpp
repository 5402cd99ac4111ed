// SPDX-License-Identifier: Apache-2.0
// The slot link is narrower or slower than card and slot share, while the GPU works. An idle link drops to 2.5 GT/s, at
// times to one lane, by design; at light load it may stay slow (MangoHud 885), so speed alone needs heavy load.
#include <algorithm>
#include <array>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

constexpr std::array<double, 7> kWidths = {1, 2, 4, 8, 12, 16, 32};
constexpr double kSlowestSpeed = 2.5;
constexpr double kFastestSpeed = 64;

std::optional<double> width_of(const Sample& sample, ReadingId id) {
  const auto width = number(sample, id);  // 0 and 63 are what a dead link reads
  return width && std::ranges::find(kWidths, *width) != kWidths.end() ? width : std::nullopt;
}

std::optional<double> speed_of(const Sample& sample, ReadingId id) {
  const auto speed = number(sample, id);
  return speed && *speed >= kSlowestSpeed && *speed <= kFastestSpeed ? speed : std::nullopt;
}

struct Link {
  std::optional<double> width = std::nullopt;
  std::optional<double> width_max = std::nullopt;
  std::optional<double> speed = std::nullopt;
  std::optional<double> speed_max = std::nullopt;
  [[nodiscard]] bool narrow() const { return width && width_max && *width < *width_max; }
  [[nodiscard]] bool slow() const { return speed && speed_max && *speed < *speed_max; }
  [[nodiscard]] bool known() const { return width && width_max && speed && speed_max; }
};

Verdict downgraded(const Link& link, const Load& load) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::Bad;
  std::string now;
  std::string best;
  const auto add = [&](R id, R id_max, double value, double value_max) {
    verdict.evidence.push_back(evidence_of(id, value));
    verdict.evidence.push_back(evidence_of(id_max, value_max));
    now += (now.empty() ? "" : " at ") + verdict.evidence[verdict.evidence.size() - 2].value;
    best += (best.empty() ? "" : " at ") + verdict.evidence.back().value;
  };
  if (link.width && link.width_max) add(R::PcieWidth, R::PcieWidthMax, *link.width, *link.width_max);
  if (link.speed && link.speed_max) add(R::PcieSpeed, R::PcieSpeedMax, *link.speed, *link.speed_max);
  verdict.detail = "Under load the PCIe link runs " + now + "; card and slot can do " + best + ".";
  verdict.evidence.push_back(evidence_of(R::UtilizationGfx, load.busy.value_or(0)));
  verdict.evidence.push_back({"second sign of load", load.sign});
  return verdict;
}

class PcieDowngraded final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (is_apu(look.device.family)) return Verdict::unknown();  // no slot
    const Link link{width_of(look.sample, R::PcieWidth), width_of(look.sample, R::PcieWidthMax),
                    speed_of(look.sample, R::PcieSpeed), speed_of(look.sample, R::PcieSpeedMax)};
    if (link.known() && !link.narrow() && !link.slow()) return Verdict::good();
    if (link.narrow() && look.load.sustained) return downgraded(link, look.load);
    if (link.slow() && look.load.heavy) return downgraded(link, look.load);
    return Verdict::unknown();
  }
};

}  // namespace

std::unique_ptr<Detector> make_pcie_downgraded() {
  return std::make_unique<PcieDowngraded>();
}

}  // namespace gpuhealth::health
