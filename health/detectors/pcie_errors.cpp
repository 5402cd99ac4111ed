// SPDX-License-Identifier: Apache-2.0
// Errors of the slot link: corrected ones and replays by their rate, uncorrected ones by their first occurrence.
// The first count seen is the baseline: what was counted before nobody can date.
#include <array>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"
#include "health/windows.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

struct CounterRow {
  ReadingId id;
  std::string_view words;
  double Thresholds::* per_hour;  // null: one is enough
  Severity severity;
  bool counts_through_a_gap;  // a link retrains at suspend and resume, which may count a few errors
};
constexpr std::array<CounterRow, 4> kCounters = {{
    {R::AerFatal, "fatal errors", nullptr, Severity::Critical, true},
    {R::AerNonfatal, "uncorrected errors", nullptr, Severity::Warning, false},
    {R::AerCorrectable, "corrected errors", &Thresholds::pcie_errors_correctable, Severity::Warning, false},
    {R::PcieReplays, "replays", &Thresholds::pcie_errors_replays, Severity::Warning, false},
}};

class PcieErrors final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    Verdict bad;
    bool any = false;
    bool all_quiet = true;
    for (std::size_t i = 0; i < kCounters.size(); ++i) {
      const auto& row = kCounters.at(i);
      const auto count = number(look.sample, row.id);
      if (!count || *count < 0) continue;
      any = true;
      auto& window = windows_.at(i);
      if (!look.continuous && !row.counts_through_a_gap) window.rebase();
      window.add(*count, look.sample.time.steady);
      const double limit = row.per_hour == nullptr ? 0 : look.thresholds.*row.per_hour;
      if (window.rise() > limit * look.thresholds.pcie_errors_clear_share / 100) all_quiet = false;
      if (window.rise() > limit) report(bad, row, window.rise(), *count);
    }
    if (bad.kind == Verdict::Kind::Bad) return bad;
    return any && all_quiet ? Verdict::good() : Verdict::unknown();
  }

 private:
  static void report(Verdict& bad, const CounterRow& row, double rise, double count) {
    if (bad.kind != Verdict::Kind::Bad) {  // the table is in order of weight: the first speaks
      bad.kind = Verdict::Kind::Bad;
      bad.severity = row.severity;
      bad.detail = "The PCIe link counted " + text_of(rise) + " " + std::string(row.words) + " in the last hour.";
    }
    bad.evidence.push_back(evidence_of(row.id, count));
    bad.evidence.push_back({std::string(row.words) + " in the last hour", text_of(rise)});
  }

  std::array<CounterWindow, kCounters.size()> windows_;
};

}  // namespace

std::unique_ptr<Detector> make_pcie_errors() {
  return std::make_unique<PcieErrors>();
}

}  // namespace gpuhealth::health
