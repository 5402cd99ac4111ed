// SPDX-License-Identifier: Apache-2.0
// Lost from the bus, when two signs that do not follow from each other say so: the kernel's word, the configuration
// space, a register that reads all ones, and all sensors failing at once.
#include <algorithm>
#include <array>
#include <string_view>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/signs.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

bool failed(const Reading& reading) {
  return reading.status == ReadingStatus::SmuDead || reading.status == ReadingStatus::Unreadable;
}

class DeviceLost final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    Verdict verdict;
    const auto now = look.sample.time.steady;
    const auto window = seconds(look.thresholds.device_lost_window_s);
    const SignSeen* said = look.signs == nullptr ? nullptr : look.signs->recent(Sign::BusLost, now, window);
    if (said != nullptr && look.signs->unanswered(Sign::BusLost, Sign::ResetSucceeded))
      verdict.evidence.push_back({"kernel log", said->text});
    const auto answers = number(look.sample, R::PcieAnswers);
    if (answers == 0.0) verdict.evidence.push_back({"configuration space", "reads all ones"});
    if (all_ones(look.sample)) verdict.evidence.push_back({"replay counter or link width", "reads all ones"});
    if (all_sensors_fail(look.sample)) verdict.evidence.push_back({"sensors", "all fail at once"});
    if (verdict.evidence.empty()) return answers ? Verdict::good() : Verdict::unknown();
    if (verdict.evidence.size() < 2) return Verdict::unknown();
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Critical;
    verdict.urgent = true;
    verdict.detail =
        std::to_string(verdict.evidence.size()) + " independent signs say that the GPU does not answer on its bus.";
    return verdict;
  }

 private:
  static bool all_ones(const Sample& sample) {
    return std::ranges::any_of(std::array{R::PcieReplays, R::PcieWidth}, [&](R id) {
      const auto* reading = sample.find(id);
      return reading != nullptr && reading->status == ReadingStatus::Implausible;
    });
  }
  static bool all_sensors_fail(const Sample& sample) {
    constexpr std::array kSensors = {R::TemperatureEdge, R::TemperatureJunction, R::TemperatureMemory,
                                     R::PowerAverage,    R::PowerInput,          R::ClockGfx,
                                     R::ClockMemory,     R::UtilizationGfx};
    int dead = 0;
    for (const auto id : kSensors) {
      const auto* reading = sample.find(id);
      if (reading == nullptr) continue;
      if (!failed(*reading)) return false;
      ++dead;
    }
    return dead >= 3;
  }
};

}  // namespace

std::unique_ptr<Detector> make_device_lost() {
  return std::make_unique<DeviceLost>();
}

}  // namespace gpuhealth::health
