// SPDX-License-Identifier: Apache-2.0
// The firmware names a limit that is not reached: power far below its limit, or a sensor far below its own.
#include <algorithm>
#include <array>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/limits.hpp"
#include "health/windows.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
using Reason = ThrottleReason;

// Those that speak of the limit that PowerCap is; others have limits of their own that are not shown.
constexpr std::array kPackagePower = {Reason::Ppt0, Reason::Ppt, Reason::SwPowerCap};

std::optional<Evidence> against(const Look& look, const ThrottleInfo& row) {
  const auto& t = look.thresholds;
  if (std::ranges::find(kPackagePower, row.reason) != kPackagePower.end()) {
    const auto cap = number(look.sample, R::PowerCap);
    const auto power = power_now(look.sample);
    if (!cap || !power || *cap <= 0 || *power <= 0 || *power >= *cap * t.throttle_contradicted_power / 100)
      return std::nullopt;
    return Evidence{std::string(row.name), "power " + text_of(*power, Unit::Watt) + " of " + text_of(*cap, Unit::Watt)};
  }
  const auto* sensor = row.kind == ThrottleKind::Thermal ? sensor_of(row.reason) : nullptr;
  const auto heat = sensor == nullptr ? std::nullopt : heat_of(look.sample, *sensor, t).heat;
  if (!heat || heat->headroom() < t.throttle_contradicted_c) return std::nullopt;
  return Evidence{std::string(row.name), std::string(sensor->name) + " " + text_of(heat->value, Unit::Celsius) +
                                             " of " + text_of(heat->critical, Unit::Celsius)};
}

class ThrottleContradicted final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& t = look.thresholds;
    // An APU's limits are the machine's: its share of them is not told.
    if (!look.sample.throttle_known || is_apu(look.device.family)) return Verdict::unknown();
    if (!look.load.busy || *look.load.busy < t.busy_percent) {
      window_.restart();
      return Verdict::unknown();
    }
    std::vector<Evidence> found;
    for (const auto& row : all_throttle_reasons()) {
      if (!look.sample.throttle.contains(row.reason)) continue;
      if (auto evidence = against(look, row)) found.push_back(std::move(*evidence));
    }
    const auto width = seconds(t.throttle_contradicted_window_s);
    if (!look.continuous) window_.restart();
    window_.add(found.empty() ? 0 : 100, look.sample.time.steady, width);
    if (!found.empty()) last_ = std::move(found);
    const auto share = window_.share(width);
    if (!share) return Verdict::unknown();
    if (*share <= 10) return Verdict::good();
    if (*share < t.throttle_contradicted_share || last_.empty()) return Verdict::unknown();
    return bad(look, *share);
  }

 private:
  [[nodiscard]] Verdict bad(const Look& look, double share) const {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Info;
    verdict.detail = "Under load the firmware gave " + last_.front().name + " as a reason for " +
                     text_of(share, Unit::Percent) + " of the time, with " + last_.front().value + ".";
    verdict.evidence = last_;
    if (const auto clock = number(look.sample, R::ClockGfx))
      verdict.evidence.push_back(evidence_of(R::ClockGfx, *clock));
    if (const auto top = number(look.sample, R::ClockGfxMax))
      verdict.evidence.push_back(evidence_of(R::ClockGfxMax, *top));
    return verdict;
  }

  ShareWindow window_;
  std::vector<Evidence> last_;
};

}  // namespace

std::unique_ptr<Detector> make_throttle_contradicted() {
  return std::make_unique<ThrottleContradicted>();
}

}  // namespace gpuhealth::health
