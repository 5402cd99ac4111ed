// SPDX-License-Identifier: Apache-2.0
// Slowed by heat: throttle reasons (or, on MI300 and newer, the firmware's own residency shares) over a window of time.
#include <algorithm>
#include <array>
#include <cmath>
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

constexpr std::array kShares = {R::ThrottleSocketThermalShare, R::ThrottleVrThermalShare, R::ThrottleHbmThermalShare,
                                R::ThrottleProchotShare};
// The CPU half of an APU is hot: that is said of the CPU, not of the GPU.
constexpr std::array kCpuReasons = {Reason::TempCore, Reason::ThmCore, Reason::ProchotCpu};

// A bit alone proves little (MangoHud 1690): its sensor must be near its limit, or, where no limit is stated, the GPU
// busy.
bool corroborated(const Look& look, Reason reason) {
  if (const auto* sensor = sensor_of(reason)) {
    const auto heat = heat_of(look.sample, *sensor, look.thresholds).heat;
    if (heat) return heat->headroom() <= look.thresholds.thermal_throttling_near_c;
  }
  return look.load.busy && *look.load.busy >= look.thresholds.busy_percent;
}

ThrottleSet believed_reasons(const Look& look) {
  ThrottleSet out;
  if (!look.sample.throttle_known) return out;
  const auto thermal = look.sample.throttle.of_kind(ThrottleKind::Thermal);
  for (const auto& row : all_throttle_reasons()) {
    if (!thermal.contains(row.reason) || std::ranges::find(kCpuReasons, row.reason) != kCpuReasons.end()) continue;
    if (corroborated(look, row.reason)) out.insert(row.reason);
  }
  return out;
}

struct Heated {
  bool known = false;
  double percent = 0;  // of the time since the look before
  std::vector<Evidence> evidence;
  bool only_skin = true;  // a laptop's skin limit, kept by design
};

void add_shares(const Look& look, Heated& out) {
  for (const auto id : kShares) {
    const auto share = number(look.sample, id);
    if (!share || *share < 0 || *share > 100) continue;
    out.known = true;
    out.percent = std::max(out.percent, *share);
    if (*share <= look.thresholds.thermal_throttling_clear_share) continue;
    out.evidence.push_back(evidence_of(id, *share));
    out.only_skin = false;
  }
}

void add_reasons(const Look& look, Heated& out) {
  out.known = out.known || look.sample.throttle_known;
  const auto reasons = believed_reasons(look);
  for (const auto& row : all_throttle_reasons()) {
    if (!reasons.contains(row.reason)) continue;
    out.percent = 100;
    out.evidence.push_back({std::string(row.name), std::string(row.text)});
    if (row.reason != Reason::TempSkin) out.only_skin = false;
  }
}

void add_temperatures(const Look& look, std::vector<Evidence>& evidence) {
  for (const auto& sensor : heat_sensors()) {
    if (const auto heat = heat_of(look.sample, sensor, look.thresholds).heat) {
      evidence.push_back(evidence_of(sensor.value, heat->value));
      evidence.push_back(evidence_of(sensor.critical, heat->critical));
    }
  }
  if (const auto clock = number(look.sample, R::ClockGfx)) evidence.push_back(evidence_of(R::ClockGfx, *clock));
}

class ThermalThrottling final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& t = look.thresholds;
    Heated now;
    add_shares(look, now);
    add_reasons(look, now);
    if (!now.known) return Verdict::unknown();
    const auto share = share_of_time(look, now);
    if (!now.evidence.empty()) last_ = now;
    if (!share) return Verdict::unknown();
    if (*share <= std::min(t.thermal_throttling_clear_share, t.thermal_throttling_share)) return Verdict::good();
    if (*share < t.thermal_throttling_share || last_.evidence.empty()) return Verdict::unknown();
    return bad(look, *share);
  }

 private:
  std::optional<double> share_of_time(const Look& look, const Heated& now) {
    if (look.once) return now.percent;
    const auto width = seconds(look.thresholds.thermal_throttling_window_s);
    if (!look.continuous) window_.restart();
    window_.add(now.percent, look.sample.time.steady, width);
    return window_.share(width);
  }

  [[nodiscard]] Verdict bad(const Look& look, double share) const {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = last_.only_skin ? Severity::Info : Severity::Warning;
    verdict.evidence = last_.evidence;
    add_temperatures(look, verdict.evidence);
    verdict.detail = look.once ? "The firmware slows the GPU because of heat"
                               : "Heat slowed the GPU for " + text_of(share, Unit::Percent) + " of the last " +
                                     text_of(std::round(static_cast<double>(window_.covered().count()) / 1e6)) + " s";
    verdict.detail += ": " + last_.evidence.front().name + " (" + last_.evidence.front().value + ").";
    return verdict;
  }

  ShareWindow window_;
  Heated last_;  // the newest look that showed a reason: bits flicker, the evidence should not
};

}  // namespace

std::unique_ptr<Detector> make_thermal_throttling() {
  return std::make_unique<ThermalThrottling>();
}

}  // namespace gpuhealth::health
