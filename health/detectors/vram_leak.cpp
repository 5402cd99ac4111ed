// SPDX-License-Identifier: Apache-2.0
// Video memory that is in use and that nobody holds, and more and more of it. Of each stretch of time the least counts:
// the memory in use and the list of processes are not read at the same moment.
#include <algorithm>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kStepBytes = 64 * kMib;  // less is noise

std::optional<double> held_by_all(const ClientLook& look) {
  if (!look.complete) return std::nullopt;
  double sum = 0;
  for (const auto& client : look.clients) {
    if (client.open && !client.vram_bytes) return std::nullopt;
    sum += static_cast<double>(client.vram_bytes.value_or(0));
  }
  return sum;
}

class VramLeak final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto used = number(look.sample, R::VramUsed);
    const auto total = number(look.sample, R::VramTotal);
    if (look.clients == nullptr || !used || !total || look.clients->time == last_look_) return last_;
    last_look_ = look.clients->time;
    const auto held = held_by_all(*look.clients);
    if (!held) return Verdict::unknown();
    const auto& t = look.thresholds;
    follow(std::max(0.0, *used - *held), look.clients->time, seconds(t.vram_leak_step_s));
    last_ = verdict(t, *used, *held, *total);
    return last_;
  }

 private:
  void follow(double lost, SteadyTime now, Duration stretch) {
    if (!begun_) begun_ = now, least_ = lost;
    if (now - *begun_ < stretch) {
      least_ = std::min(least_, lost);
      return;
    }
    if (!first_ || least_ < *first_) first_ = level_ = least_, steps_ = 0;
    if (least_ >= level_ + kStepBytes) level_ = least_, ++steps_;
    if (least_ < level_ - kStepBytes) level_ = least_;
    now_ = least_;
    begun_ = now;
    least_ = lost;
  }

  Verdict verdict(const Thresholds& t, double used, double held, double total) const {
    if (!first_) return Verdict::unknown();
    const double needed = std::max(t.vram_leak_mib * kMib, total * t.vram_leak_share / 100);
    const double grown = now_ - *first_;
    if (grown < needed / 2) return Verdict::good();
    if (grown < needed || steps_ < t.vram_leak_steps) return Verdict::unknown();
    Verdict out;
    out.kind = Verdict::Kind::Bad;
    out.detail = text_of(now_, Unit::Byte) + " of video memory are in use that no process holds, " +
                 text_of(grown, Unit::Byte) + " more than at first.";
    out.evidence = {evidence_of(R::VramUsed, used),
                    {"held by processes", text_of(held, Unit::Byte)},
                    {"held by nobody at first", text_of(*first_, Unit::Byte)},
                    {"held by nobody", text_of(now_, Unit::Byte)},
                    evidence_of(R::VramTotal, total)};
    return out;
  }

  SteadyTime last_look_;
  std::optional<SteadyTime> begun_;  // of the stretch
  double least_ = 0;                 // in it
  std::optional<double> first_;      // the lowest stretch of all
  double level_ = 0;                 // of the last step
  double now_ = 0;                   // the last stretch
  double steps_ = 0;
  Verdict last_;
};

}  // namespace

std::unique_ptr<Detector> make_vram_leak() {
  return std::make_unique<VramLeak>();
}

}  // namespace gpuhealth::health
