// SPDX-License-Identifier: Apache-2.0
// The management firmware no longer answers: sensors of several kinds that worked before fail at once. Limits and
// tables are kept by the driver and go on being readable, so they prove nothing.
#include <algorithm>
#include <array>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

constexpr std::array<std::string_view, 6> kKinds = {"temperature", "power", "clock", "voltage", "utilization", "fan"};

struct LiveSensor {
  ReadingId id;
  std::size_t kind;  // in kKinds
};
constexpr std::array kLive = std::to_array<LiveSensor>({
    {R::TemperatureEdge, 0},  {R::TemperatureJunction, 0}, {R::TemperatureMemory, 0}, {R::TemperatureVrGfx, 0},
    {R::TemperatureVrSoc, 0}, {R::TemperatureVrMemory, 0}, {R::TemperatureGfx, 0},    {R::TemperatureSoc, 0},
    {R::PowerAverage, 1},     {R::PowerInput, 1},          {R::ClockGfx, 2},          {R::ClockMemory, 2},
    {R::ClockSoc, 2},         {R::ClockFabric, 2},         {R::VoltageGfx, 3},        {R::VoltageSoc, 3},
    {R::VoltageMemory, 3},    {R::UtilizationGfx, 4},      {R::UtilizationMemory, 4}, {R::UtilizationMedia, 4},
    {R::FanRpm, 5},
});

class SmuDead final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    std::array<int, kKinds.size()> dead_of{};
    int dead = 0;
    int alive = 0;
    for (const auto& sensor : kLive) {
      const auto* reading = look.sample.find(sensor.id);
      if (reading == nullptr) continue;
      if (reading->status == ReadingStatus::Valid) ++alive;
      if (reading->status != ReadingStatus::SmuDead) continue;
      ++dead;
      ++dead_of.at(sensor.kind);
    }
    const auto kinds = std::ranges::count_if(dead_of, [](int n) { return n > 0; });
    const double share = dead == 0 ? 0 : 100.0 * dead / (dead + alive);
    // With the kernel's own word that the firmware is silent, one kind is enough.
    const bool said = look.signs != nullptr && look.signs->recent(Sign::SmuSilent, look.sample.time.steady,
                                                                  seconds(look.thresholds.smu_dead_word_s)) != nullptr;
    if (static_cast<double>(kinds) >= (said ? 1 : look.thresholds.smu_dead_groups) &&
        share >= look.thresholds.smu_dead_share)
      return silent(dead_of, dead, alive);
    return dead == 0 && alive > 0 ? Verdict::good() : Verdict::unknown();
  }

 private:
  static Verdict silent(const std::array<int, kKinds.size()>& dead_of, int dead, int alive) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Critical;
    verdict.detail = std::to_string(dead) + " of " + std::to_string(dead + alive) +
                     " sensors that worked before fail at once; the management firmware does not answer.";
    for (std::size_t i = 0; i < kKinds.size(); ++i)
      if (dead_of.at(i) > 0)
        verdict.evidence.push_back({std::string(kKinds.at(i)), std::to_string(dead_of.at(i)) + " without an answer"});
    return verdict;
  }
};

}  // namespace

std::unique_ptr<Detector> make_smu_dead() {
  return std::make_unique<SmuDead>();
}

}  // namespace gpuhealth::health
