// SPDX-License-Identifier: Apache-2.0
// The kernel's files and the vendor's library, asked the same: what is fixed must be equal, what moves may differ by as
// much as it moves between the two reads.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
constexpr double kMib = 1024.0 * 1024.0;

struct Compared {
  R id;
  double apart;  // that they may be, in the reading's unit
  double share;  // and in percent of the greater
};
constexpr auto kCompared = std::to_array<Compared>({
    {R::TemperatureEdge, 10, 0},
    {R::TemperatureJunction, 15, 0},
    {R::TemperatureMemory, 10, 0},
    {R::TemperatureEdgeCritical, 0.5, 0},
    {R::TemperatureEdgeEmergency, 0.5, 0},
    {R::TemperatureJunctionCritical, 0.5, 0},
    {R::TemperatureJunctionEmergency, 0.5, 0},
    {R::TemperatureMemoryCritical, 0.5, 0},
    {R::TemperatureMemoryEmergency, 0.5, 0},
    {R::PowerAverage, 20, 35},
    {R::PowerInput, 20, 35},
    {R::PowerCap, 0.6, 0},
    {R::PowerCapDefault, 0.6, 0},
    {R::PowerCapMin, 0.6, 0},
    {R::PowerCapMax, 0.6, 0},
    {R::FanRpm, 300, 25},
    {R::VramTotal, 0, 0},
    {R::VramUsed, 1024 * kMib, 25},
    {R::VramVisibleTotal, 0, 0},
    {R::GttTotal, 0, 0},
    {R::PcieReplays, 4, 10},
    {R::VramBadPages, 0, 0},
    {ras_reading(0, RasKind::Correctable), 4, 10},
    {ras_reading(0, RasKind::Uncorrectable), 0, 0},
});

struct Difference {
  double ours = 0, theirs = 0, times = 0;
};

class SourcesDisagree final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (look.second == nullptr) return Verdict::unknown();
    if (look.second->time.steady != last_) {
      last_ = look.second->time.steady;
      compare(look.sample, *look.second);
    }
    const auto enough = look.thresholds.sources_disagree_count;
    const bool any = std::ranges::any_of(apart_, [&](const auto& a) { return a.second.times >= enough; });
    if (any) return bad(enough);
    return apart_.empty() ? Verdict::good() : Verdict::unknown();
  }

 private:
  void compare(const Sample& ours, const Sample& theirs) {
    for (const auto& row : kCompared) {
      const auto a = number(ours, row.id);
      const auto b = number(theirs, row.id);
      const bool differ =
          a && b && std::abs(*a - *b) > std::max(row.apart, row.share / 100 * std::max(std::abs(*a), std::abs(*b)));
      if (!differ) {
        apart_.erase(row.id);
        continue;
      }
      auto& difference = apart_[row.id];
      difference = {*a, *b, difference.times + 1};
    }
  }

  [[nodiscard]] Verdict bad(double enough) const {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    for (const auto& [id, difference] : apart_) {
      const auto* row = find_reading(id);
      if (row == nullptr || difference.times < enough) continue;
      const auto ours = text_of(difference.ours, row->unit);
      const auto theirs = text_of(difference.theirs, row->unit);
      if (verdict.detail.empty())
        verdict.detail =
            std::string(row->name) + ": the kernel's file says " + ours + ", librocm_smi64 " + theirs + ".";
      verdict.evidence.push_back({std::string(row->name), ours});
      verdict.evidence.push_back({std::string(row->name) + " by librocm_smi64", theirs});
    }
    return verdict;
  }

  SteadyTime last_;
  std::map<R, Difference> apart_;  // by how many comparisons in a row
};

}  // namespace

std::unique_ptr<Detector> make_sources_disagree() {
  return std::make_unique<SourcesDisagree>();
}

}  // namespace gpuhealth::health
