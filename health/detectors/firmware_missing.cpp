// SPDX-License-Identifier: Apache-2.0
// A firmware file that the driver did not find, on a GPU that did not come up. A missing optional file of a GPU that
// works is nobody's concern.
#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/signs.hpp"

namespace gpuhealth::health {
namespace {

class FirmwareMissing final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (look.signs == nullptr) return Verdict::unknown();
    const auto* missing = look.signs->last(Sign::FirmwareMissing);
    if (missing == nullptr) return Verdict::good();
    const auto* failed = look.signs->last(Sign::InitFailed);
    const bool came_up = !look.device.driver.empty() && (failed == nullptr || failed->at < missing->at);
    if (came_up) return Verdict::good();
    if (failed == nullptr && !look.device.driver.empty()) return Verdict::unknown();
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.detail = "The kernel says: " + missing->text;
    verdict.evidence = {{"kernel log", missing->text}};
    if (failed != nullptr) verdict.evidence.push_back({"kernel log", failed->text});
    return verdict;
  }
};

}  // namespace

std::unique_ptr<Detector> make_firmware_missing() {
  return std::make_unique<FirmwareMissing>();
}

}  // namespace gpuhealth::health
