// SPDX-License-Identifier: Apache-2.0
// What lay in video memory before a suspend lies in system memory after it, though video memory has room
// (SteamOS 2811, bazzite 5614). Only a suspend is looked at: at other times system memory grows for good reasons.
#include <algorithm>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;

constexpr double kMib = 1024.0 * 1024.0;

struct Memory {
  double vram_used = 0;
  double vram_total = 0;
  double gtt_used = 0;
  [[nodiscard]] double vram_free() const { return std::max(0.0, vram_total - vram_used); }
};

std::optional<Memory> memory_of(const Sample& sample) {
  const auto vram_used = number(sample, R::VramUsed);
  const auto vram_total = number(sample, R::VramTotal);
  const auto gtt_used = number(sample, R::GttUsed);
  if (!vram_used || !vram_total || !gtt_used || *vram_total <= 0) return std::nullopt;
  return Memory{*vram_used, *vram_total, *gtt_used};
}

double least_move(const Memory& before, const Thresholds& t) {
  return std::max(t.vram_moved_mib * kMib, before.vram_used * t.vram_moved_share / 100);
}

bool has_moved(const Memory& before, const Memory& now, const Thresholds& t) {
  const double gained = now.gtt_used - before.gtt_used;
  const double dropped = before.vram_used - now.vram_used;
  return gained >= least_move(before, t) && dropped >= gained * t.vram_dropped_share / 100;
}

Verdict evicted(const Memory& before, const Memory& now) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::Bad;
  verdict.detail = text_of(now.gtt_used - before.gtt_used, Unit::Byte) +
                   " moved from video to system memory when the machine slept, and " +
                   text_of(now.vram_free(), Unit::Byte) + " of video memory are free.";
  verdict.evidence = {{"gtt.used before", text_of(before.gtt_used, Unit::Byte)},
                      evidence_of(R::GttUsed, now.gtt_used),
                      {"vram.used before", text_of(before.vram_used, Unit::Byte)},
                      evidence_of(R::VramUsed, now.vram_used),
                      evidence_of(R::VramTotal, now.vram_total)};
  return verdict;
}

class VramEvicted final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    if (is_apu(look.device.family)) return Verdict::unknown();  // its memory is system memory
    notice_resume(look);
    const auto now = memory_of(look.sample);
    if (!now) return Verdict::unknown();
    const auto& t = look.thresholds;
    if (!moved_ && before_ && has_moved(*before_, *now, t)) moved_ = before_;
    last_ = now;
    // What an earlier run of the daemon saw is not known here: only little use of system memory proves that it is over.
    if (!moved_) return over_ || now->gtt_used < t.vram_moved_mib * kMib ? Verdict::good() : Verdict::unknown();

    const double gained = now->gtt_used - moved_->gtt_used;
    const double needed = least_move(*moved_, t);
    if (gained < needed / 2) {
      moved_.reset();
      before_.reset();
      over_ = true;
      return Verdict::good();
    }
    const bool room = now->vram_free() >= gained;  // else it rightly lies where it lies
    return gained >= needed && room ? evicted(*moved_, *now) : Verdict::unknown();
  }

 private:
  void notice_resume(const Look& look) {
    const auto at = look.sample.time.steady;
    if (!look.continuous && last_) {
      before_ = last_;
      resumed_ = at;
    }
    if (before_ && at - resumed_ > seconds(look.thresholds.vram_watch_s)) before_.reset();
  }

  std::optional<Memory> last_;
  std::optional<Memory> before_;  // as it was before the latest suspend, while a move is looked for
  std::optional<Memory> moved_;   // the same, once a move was seen
  bool over_ = false;             // a move was seen to end
  SteadyTime resumed_;
};

}  // namespace

std::unique_ptr<Detector> make_vram_evicted() {
  return std::make_unique<VramEvicted>();
}

}  // namespace gpuhealth::health
