// SPDX-License-Identifier: Apache-2.0
// Errors that the GPU counts of its own memory and logic. Counts are those since the driver was loaded: uncorrectable
// ones concern from the first, corrected ones by their rate, bad pages when they grow.
#include <cmath>
#include <map>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/signs.hpp"
#include "health/windows.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
constexpr double kMib = 1024.0 * 1024.0;

class RasUncorrectable final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    Verdict verdict;
    double sum = 0;
    bool any = false;
    for (std::size_t block = 0; block < kRasBlocks.size(); ++block) {
      const auto id = ras_reading(block, RasKind::Uncorrectable);
      const auto count = number(look.sample, id);
      if (!count) continue;
      any = true;
      if (*count <= 0) continue;
      sum += *count;
      verdict.evidence.push_back(evidence_of(id, *count));
    }
    const auto* said = look.signs == nullptr ? nullptr : look.signs->last(Sign::MemoryError);
    if (said != nullptr) verdict.evidence.push_back({"kernel log", said->text});
    if (verdict.evidence.empty()) return any ? Verdict::good() : Verdict::unknown();
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Critical;
    verdict.detail = sum > 0 ? "The GPU counted " + text_of(sum) + " uncorrectable errors since its driver was loaded."
                             : "The kernel says: " + said->text;
    return verdict;
  }
};

class RasCorrectable final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    Verdict verdict;
    double rise = 0;
    bool any = false;
    for (std::size_t block = 0; block < kRasBlocks.size(); ++block) {
      for (const auto kind : {RasKind::Correctable, RasKind::Deferred}) {
        const auto id = ras_reading(block, kind);
        const auto count = number(look.sample, id);
        if (!count || *count < 0) continue;
        any = true;
        auto& window = windows_[id];
        window.add(*count, look.sample.time.steady);
        if (window.rise() <= 0) continue;
        rise += window.rise();
        verdict.evidence.push_back(evidence_of(id, *count));
      }
    }
    const double limit = look.thresholds.ras_correctable_rate;
    if (rise <= limit) return !any ? Verdict::unknown() : rise <= limit / 4 ? Verdict::good() : Verdict::unknown();
    verdict.kind = Verdict::Kind::Bad;
    verdict.detail = "The GPU corrected " + text_of(rise) + " errors in the last hour.";
    verdict.evidence.push_back({"errors in the last hour", text_of(rise)});
    return verdict;
  }

 private:
  std::map<R, CounterWindow> windows_;
};

class BadPages final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto pages = number(look.sample, R::VramBadPages);
    if (!pages) return Verdict::unknown();
    const auto now = look.sample.time.steady;
    if (last_ && *pages > *last_) {
      grew_ = now;
      before_ = *last_;
    }
    last_ = pages;
    const auto vram = number(look.sample, R::VramTotal);
    // The driver's own rule for a threshold: one bad page for each 100 MiB (amdgpu_ras.c).
    const double worn_out = vram ? std::floor(*vram / kMib / 100) : 0;
    const bool worn = worn_out > 0 && *pages * 100 >= worn_out * look.thresholds.bad_pages_worn;
    const bool grows = grew_ && now - *grew_ <= seconds(look.thresholds.bad_pages_window_s);
    if (!worn && !grows) return Verdict::good();
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = worn ? Severity::Critical : Severity::Warning;
    verdict.detail = text_of(*pages) + " pages of video memory are bad";
    if (grows) verdict.detail += ", up from " + text_of(before_);
    verdict.detail += worn_out > 0 ? "; a card of this size counts as worn out at " + text_of(worn_out) + "." : ".";
    verdict.evidence = {evidence_of(R::VramBadPages, *pages)};
    if (worn_out > 0) verdict.evidence.push_back({"worn out at", text_of(worn_out)});
    return verdict;
  }

 private:
  std::optional<double> last_;
  std::optional<SteadyTime> grew_;
  double before_ = 0;
};

}  // namespace

std::unique_ptr<Detector> make_ras_uncorrectable() {
  return std::make_unique<RasUncorrectable>();
}
std::unique_ptr<Detector> make_ras_correctable() {
  return std::make_unique<RasCorrectable>();
}
std::unique_ptr<Detector> make_bad_pages() {
  return std::make_unique<BadPages>();
}

}  // namespace gpuhealth::health
