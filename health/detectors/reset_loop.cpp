// SPDX-License-Identifier: Apache-2.0
// Resets of the whole GPU, by their number in the last hour. In an XGMI hive all members are reset together: each
// counts its own, and the one with an error of its own says so beside.
#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/signs.hpp"

namespace gpuhealth::health {
namespace {

class ResetLoop final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (look.signs == nullptr) return Verdict::unknown();
    const auto window = seconds(look.thresholds.reset_loop_window_s);
    const auto resets = look.signs->resets(look.sample.time.steady, window);
    if (resets == 0) return Verdict::good();
    if (static_cast<double>(resets) < look.thresholds.reset_loop_count) return Verdict::unknown();
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.detail = "The driver reset the GPU " + std::to_string(resets) + " times within " +
                     text_of(look.thresholds.reset_loop_window_s / 60) + " minutes.";
    verdict.evidence = {{"resets", std::to_string(resets)}};
    if (const auto* last = look.signs->last(Sign::ResetBegan)) verdict.evidence.push_back({"kernel log", last->text});
    return verdict;
  }
};

}  // namespace

std::unique_ptr<Detector> make_reset_loop() {
  return std::make_unique<ResetLoop>();
}

}  // namespace gpuhealth::health
