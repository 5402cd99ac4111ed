// SPDX-License-Identifier: Apache-2.0
#include "health/load.hpp"

#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

constexpr double kIdleBusyPercent = 5;     // at or below this a GPU idles, for learning its idle power
constexpr double kIdleMeanWeight = 0.05;   // a mean over some twenty idle looks
constexpr double kAboveIdleFloorWatt = 5;  // power sensors of small cards jitter by a few watts

std::optional<double> believed_busy(const DeviceInfo& device, const Sample& sample) {
  if (device.family == AsicFamily::ApuRaven) return std::nullopt;  // constant 100: drm/amd 1932
  const auto busy = number(sample, ReadingId::UtilizationGfx);
  return busy && *busy >= 0 && *busy <= 100 ? busy : std::nullopt;
}

std::string power_sign(const Sample& sample, const Thresholds& thresholds) {
  const auto power = power_now(sample);
  auto cap = number(sample, ReadingId::PowerCap);
  if (!cap || *cap <= 0) cap = number(sample, ReadingId::PowerCapDefault);
  if (!power || !cap || *cap <= 0 || *power < *cap * thresholds.busy_power_share / 100) return {};
  return "power " + text_of(*power, Unit::Watt);
}

std::string memory_sign(const Sample& sample, const Thresholds& thresholds) {
  const auto activity = number(sample, ReadingId::UtilizationMemory);
  const auto clock = number(sample, ReadingId::ClockMemory);
  const auto lowest = number(sample, ReadingId::ClockMemoryMin);
  const bool raised = clock && lowest && *clock > *lowest * 1.05;
  const double needed = raised ? thresholds.busy_memory_activity : thresholds.busy_memory_activity_slow;
  if (!activity || *activity > 100 || *activity < needed) return {};
  return "memory activity " + text_of(*activity, Unit::Percent);
}

Load instant(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds) {
  Load load;
  load.busy = believed_busy(device, sample);
  load.sign = power_sign(sample, thresholds);
  if (load.sign.empty()) load.sign = memory_sign(sample, thresholds);
  return load;
}

}  // namespace

void LoadTracker::Streak::step(bool holds, SteadyTime now) {
  if (!holds) {
    since.reset();
    samples = 0;
    return;
  }
  if (!since) since = now;
  samples += 1;
}

bool LoadTracker::Streak::lasts(SteadyTime now, double s, double at_least) const {
  return since && now - *since >= seconds(s) && samples >= at_least;
}

Load LoadTracker::follow(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds,
                         bool continuous) {
  const auto now = sample.time.steady;
  if (!continuous) {
    awake_since_ = now;
    busy_ = {};
    heavy_ = {};
  }
  auto load = instant(device, sample, thresholds);
  if (!awake_since_ || now - *awake_since_ < seconds(thresholds.sample_settle_s)) load.busy.reset();

  const auto power = power_now(sample);
  if (load.busy && power && *load.busy <= kIdleBusyPercent)
    idle_power_w_ = idle_power_w_ ? *idle_power_w_ + (*power - *idle_power_w_) * kIdleMeanWeight : *power;
  load.above_idle =
      power && idle_power_w_ && *power >= *idle_power_w_ * (1 + thresholds.busy_above_idle / 100) + kAboveIdleFloorWatt;

  busy_.step(load.at_least(thresholds.busy_percent), now);
  heavy_.step(load.at_least(thresholds.busy_heavy_percent), now);
  load.sustained = busy_.lasts(now, thresholds.busy_for_s, thresholds.busy_samples);
  load.heavy = heavy_.lasts(now, thresholds.busy_heavy_for_s, thresholds.busy_samples);
  return load;
}

Load load_at_once(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds) {
  auto load = instant(device, sample, thresholds);
  load.sustained = load.at_least(thresholds.busy_percent);
  load.heavy = load.at_least(thresholds.busy_heavy_percent);
  return load;
}

}  // namespace gpuhealth::health
