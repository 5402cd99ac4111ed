// SPDX-License-Identifier: Apache-2.0
// A hang that no reset has ended. A reset that the driver calls a success ends it, whatever came before; what the
// management firmware says afterwards is smu-dead's.
#include <array>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/signs.hpp"

namespace gpuhealth::health {
namespace {

class GpuHang final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (look.signs == nullptr) return Verdict::unknown();
    const auto& signs = *look.signs;
    for (const auto sign : {Sign::ResetFailed, Sign::Wedged})
      if (signs.unanswered(sign, Sign::ResetSucceeded)) return hangs(*signs.last(sign));
    if (!signs.unanswered(Sign::SchedulerHang, Sign::ResetSucceeded)) return Verdict::good();
    const auto& hang = *signs.last(Sign::SchedulerHang);
    // A reset follows within seconds where the driver can do one.
    if (look.sample.time.steady - hang.at < seconds(look.thresholds.gpu_hang_grace_s)) return Verdict::unknown();
    return hangs(hang);
  }

 private:
  static Verdict hangs(const SignSeen& seen) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Critical;
    verdict.detail = "The kernel says: " + seen.text;
    verdict.evidence = {{"kernel log", seen.text}};
    return verdict;
  }
};

}  // namespace

std::unique_ptr<Detector> make_gpu_hang() {
  return std::make_unique<GpuHang>();
}

}  // namespace gpuhealth::health
