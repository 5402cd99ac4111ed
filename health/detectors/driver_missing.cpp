// SPDX-License-Identifier: Apache-2.0
// An AMD display controller or accelerator that no driver is bound to. Bound to a pass-through driver it belongs to a
// virtual machine, by design.
#include "health/detector.hpp"
#include "health/detectors/all.hpp"

namespace gpuhealth::health {
namespace {

constexpr std::uint16_t kAmd = 0x1002;
constexpr std::uint32_t kDisplayController = 0x03;
constexpr std::uint32_t kProcessingAccelerator = 0x12;

class DriverMissing final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto& device = look.device;
    const auto base_class = device.pci_class >> 16;
    if (device.vendor_id != kAmd || (base_class != kDisplayController && base_class != kProcessingAccelerator))
      return Verdict::unknown();
    if (!device.driver.empty()) return Verdict::good();
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.detail = "No driver is bound to the GPU at " + to_string(device.pci) + ".";
    verdict.evidence = {{"driver", "none"}};
    const auto* said = look.signs == nullptr ? nullptr : look.signs->last(Sign::InitFailed);
    if (said != nullptr) verdict.evidence.push_back({"kernel log", said->text});
    return verdict;
  }
};

}  // namespace

std::unique_ptr<Detector> make_driver_missing() {
  return std::make_unique<DriverMissing>();
}

}  // namespace gpuhealth::health
