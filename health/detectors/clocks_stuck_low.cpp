// SPDX-License-Identifier: Apache-2.0
// The clock stays at its lowest level although the GPU works, and nothing explains it: no heat, no limit, nobody who
// set it so. The busy percentage must have a second sign beside it.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

constexpr std::array<std::string_view, 3> kRisingLevels = {"auto", "high", "profile_peak"};
constexpr double kOneLevelShare = 0.8;
constexpr double kClearAboveLow = 1.1;         // Vega 56: lowest level 852 MHz, the next 991 MHz
constexpr double kExplainingSharePercent = 5;  // MI300: throttled this much of the time explains a low clock

bool clock_was_set_by_somebody(const Sample& sample) {
  return !sample.performance_level.empty() &&
         std::ranges::find(kRisingLevels, sample.performance_level) == kRisingLevels.end();
}

bool throttled(const Look& look) {
  const auto& sample = look.sample;
  if (!sample.throttle.empty()) return true;
  for (const auto id : {R::ThrottleProchotShare, R::ThrottlePowerShare, R::ThrottleSocketThermalShare,
                        R::ThrottleVrThermalShare, R::ThrottleHbmThermalShare})
    if (number(sample, id).value_or(0) >= kExplainingSharePercent) return true;
  const auto cap = number(sample, R::PowerCap);
  return cap && *cap > 0 && power_now(sample).value_or(0) >= *cap * look.thresholds.power_throttling_off_cap / 100;
}

struct Range {
  double low;    // at or below: stuck low
  double clear;  // at or above: not stuck
};

std::optional<Range> range_of(const Sample& sample, const Thresholds& t) {
  const auto lowest = number(sample, R::ClockGfxMin);
  const auto highest = number(sample, R::ClockGfxMax);
  if (!highest || *highest <= 0) return std::nullopt;
  double low = *highest * t.clocks_fraction / 100;
  if (lowest && *lowest > 0) {
    if (*lowest > *highest * kOneLevelShare) return std::nullopt;  // a table of one level has no low
    low = std::max(low, *lowest * (1 + t.clocks_above_lowest / 100));
  }
  return Range{low, std::max(*highest * t.clocks_clear_fraction / 100, low * kClearAboveLow)};
}

class ClocksStuckLow final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& sample = look.sample;
    if (is_apu(look.device.family)) return Verdict::unknown();  // the CPU takes its power; Raven's busy is always 100
    if (clock_was_set_by_somebody(sample)) return Verdict::good();
    const auto clock = number(sample, R::ClockGfx);
    const auto range = range_of(sample, look.thresholds);
    if (!clock || !range || *clock <= 0) return Verdict::unknown();
    if (*clock >= range->clear) return Verdict::good();
    const bool loaded = look.load.busy && *look.load.busy >= look.thresholds.clocks_busy &&
                        (!look.load.sign.empty() || look.load.above_idle);
    const bool low = *clock <= range->low && !sample.performance_level.empty() && !throttled(look);
    looks_in_a_row_ = loaded && low ? looks_in_a_row_ + 1 : 0;
    // Busy, power and clock are averages of different lengths: one look may mix the end of a burst with the idle after
    // it.
    return looks_in_a_row_ >= look.thresholds.busy_samples ? stuck(look, *clock) : Verdict::unknown();
  }

 private:
  static Verdict stuck(const Look& look, double clock) {
    const double highest = number(look.sample, R::ClockGfxMax).value_or(0);
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.detail = "The GPU is " + text_of(look.load.busy.value_or(0), Unit::Percent) +
                     " busy and its clock stays at " + text_of(clock, Unit::Megahertz) + " of " +
                     text_of(highest, Unit::Megahertz) + "; neither heat nor a limit explains it.";
    verdict.evidence = {evidence_of(R::ClockGfx, clock), evidence_of(R::ClockGfxMax, highest)};
    if (const auto lowest = number(look.sample, R::ClockGfxMin))
      verdict.evidence.push_back(evidence_of(R::ClockGfxMin, *lowest));
    verdict.evidence.push_back(evidence_of(R::UtilizationGfx, look.load.busy.value_or(0)));
    if (const auto power = power_now(look.sample)) verdict.evidence.push_back({"power", text_of(*power, Unit::Watt)});
    verdict.evidence.push_back({"second sign of load", look.load.sign.empty() ? "power above idle" : look.load.sign});
    verdict.evidence.push_back({"performance level", look.sample.performance_level});
    return verdict;
  }

  double looks_in_a_row_ = 0;
};

}  // namespace

std::unique_ptr<Detector> make_clocks_stuck_low() {
  return std::make_unique<ClocksStuckLow>();
}

}  // namespace gpuhealth::health
