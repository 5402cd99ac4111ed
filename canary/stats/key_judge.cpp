// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "canary/stats/judge.hpp"

namespace gpuhealth::canary::stats {
namespace {

constexpr double kDeadlineRatio = 20;  // a deadline is twenty times the reference
const double kOutlier = std::log(1.4);
const double kDrift = std::log(1.06);
const double kRecovered = std::log(1.03);
constexpr std::size_t kRegressionRuns = 12;
constexpr std::size_t kFewestRuns = 6;
const double kEightfold = std::log(8.0);

std::string times(double ratio) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), ratio < 10 ? "%.2fx" : "%.0fx", ratio);
  return text.data();
}

}  // namespace

KeyJudge::KeyJudge(Better better, double sigma_floor) : better_(better), floor_(sigma_floor) {}

void KeyJudge::enter(const Measurement& m) {
  if (!epochs_.empty() && epochs_[now_].name == m.epoch) {
    if (epochs_[now_].software.empty()) epochs_[now_].software = m.software;
    return;
  }
  if (!epochs_.empty() && !good_) settle_early();
  const auto it = std::ranges::find(epochs_, m.epoch, &Epoch::name);
  now_ = static_cast<std::size_t>(it - epochs_.begin());
  if (it == epochs_.end()) {
    epochs_.emplace_back();
    epochs_.back().name = m.epoch;
    epochs_.back().software = m.software;
  }
  // What was measured under other software says nothing of this one.
  cusum_.reset();
  sprt_.reset();
  better_runs_.clear();
  regression_recent_.clear();
  collapse_ = Collapse();
  if (good_ && *good_ != now_ && epochs_[now_].state != Epoch::State::Good)
    sprt_.emplace(epochs_[*good_].baseline->sigma);
}

// The software changes before the baseline is complete: what there is must do, or the new software would be compared
// with nothing.
void KeyJudge::settle_early() {
  auto& epoch = epochs_[now_];
  if (epoch.runs.size() < kFewestRuns) return;
  epoch.baseline = baseline_of(epoch.runs, 2 * floor_);
  epoch.runs = {};
  settle();
}

const Baseline* KeyJudge::reference() const {
  const auto& epoch = epochs_[now_];
  if (epoch.state == Epoch::State::Good) return &*epoch.baseline;
  return good_ ? &*epochs_[*good_].baseline : nullptr;
}

const KeyJudge::Epoch* KeyJudge::compared_with() const {
  return good_ && *good_ != now_ ? &epochs_[*good_] : nullptr;
}

void KeyJudge::learn(double log_time, bool outlier) {
  auto& epoch = epochs_[now_];
  if (epoch.baseline || outlier) return;
  epoch.runs.push_back(log_time);
  if (epoch.runs.size() < kBaselineRuns) return;
  epoch.baseline = baseline_of(epoch.runs, floor_);
  epoch.runs = {};
  settle();
}

// A complete baseline becomes the last known good one only when the new software was compared with the old and found
// the same: a regression that came with a kernel is never learned.
void KeyJudge::settle() {
  auto& epoch = epochs_[now_];
  if (!epoch.baseline || epoch.state != Epoch::State::Learning) return;
  if (good_ && *good_ != now_ && (!sprt_ || sprt_->answer() != Sprt::Answer::Same)) return;
  epoch.state = Epoch::State::Good;
  good_ = now_;
  cusum_.reset();
}

// Lasting gains are taken over (a fan was cleaned): only so that a later loss shows.
void KeyJudge::improve(double log_time, double y) {
  auto& epoch = epochs_[now_];
  if (epoch.state != Epoch::State::Good || y > -std::log(1.03)) {
    better_runs_.clear();
    return;
  }
  better_runs_.push_back(log_time);
  if (better_runs_.size() < kBaselineRuns) return;
  epoch.baseline = baseline_of(better_runs_, floor_);
  better_runs_.clear();
  cusum_.reset();
}

void KeyJudge::open(Outcome& out, const Measurement& m, FindingKind kind, Level level, double since, double y,
                    std::string_view why) {
  const auto it = open_.find(kind);
  if (it != open_.end() && (it->second.level == level || it->second.level == Level::Confirmed)) {
    it->second.ratio = std::exp(y);
    return;
  }
  Finding f;
  f.kind = kind;
  f.level = level;
  f.device = m.device;
  f.canary = m.canary;
  f.metric = m.metric;
  f.time = m.time;
  f.since = it == open_.end() ? since : it->second.since;
  f.ratio = std::exp(y);
  f.epoch = m.epoch;
  if (const auto* before = compared_with()) {
    f.good_epoch = before->name;
    f.changed = differences(before->software, epochs_[now_].software);
  }
  f.detail = m.canary + " takes " + times(*f.ratio) + " of its usual time" + std::string(why);
  open_[kind] = f;
  out.findings.push_back(std::move(f));
}

void KeyJudge::close(Outcome& out, const Measurement& m, FindingKind kind) {
  const auto node = open_.extract(kind);
  if (node.empty()) return;
  out.findings.push_back(recovered(node.mapped(), m.time));
}

void KeyJudge::compare_epochs(Outcome& out, const Measurement& m, double y) {
  auto& epoch = epochs_[now_];
  const auto answer = sprt_->step(y);
  if (answer != Sprt::Answer::Slower) {
    if (answer == Sprt::Answer::Same) close(out, m, FindingKind::Regression);  // of another epoch
    settle();
    return;
  }
  epoch.state = Epoch::State::Regressed;
  regression_recent_.push_back(y);
  if (regression_recent_.size() > kRegressionRuns) regression_recent_.erase(regression_recent_.begin());
  const bool sure = m.gate == Gate::Strong || y >= kEightfold;
  open(out, m, FindingKind::Regression, sure ? Level::Confirmed : Level::Suspect, m.time, y,
       " since the software changed");
  if (regression_recent_.size() < kRegressionRuns || median(regression_recent_) >= kRecovered) return;
  // Gone without a change of software: compared anew.
  close(out, m, FindingKind::Regression);
  epoch.state = Epoch::State::Learning;
  epoch.baseline.reset();
  epoch.runs.clear();
  regression_recent_.clear();
  sprt_.emplace(epochs_[*good_].baseline->sigma);
}

void KeyJudge::compare(Outcome& out, const Measurement& m, double y, bool censored) {
  const bool quiet = m.gate == Gate::Strong;
  const auto step = collapse_.step(m.time, y, censored, quiet);
  out.next_after_s = step.next_after_s;
  if (step.state == Collapse::State::Suspect || step.state == Collapse::State::Confirmed) {
    open(out, m, FindingKind::Collapse, step.state == Collapse::State::Confirmed ? Level::Confirmed : Level::Suspect,
         collapse_.since(), y, "");
  } else if (step.state == Collapse::State::Calm) {
    close(out, m, FindingKind::Collapse);
  }
  if (sprt_) {
    compare_epochs(out, m, y);
    if (sprt_ && sprt_->answer() != Sprt::Answer::Same) return;  // drift is asked once the epochs are known to be alike
  } else if (y < kDrift) {
    close(out, m, FindingKind::Regression);  // the good software is back
  }
  if (!cusum_) cusum_.emplace(reference()->sigma);
  if (cusum_->step(y)) {
    open(out, m, FindingKind::Drift, quiet ? Level::Confirmed : Level::Suspect, m.time, cusum_->recent(),
         ": slower than its baseline, run after run");
  } else if (open_.contains(FindingKind::Drift) && cusum_->recent() < kRecovered) {
    cusum_.reset();
    close(out, m, FindingKind::Drift);
  }
}

Outcome KeyJudge::observe(const Measurement& m) {
  Outcome out;
  const bool censored = m.status == Status::Timeout;
  if (!censored && (m.status != Status::Ok || !m.value || !(*m.value > 0))) return out;
  enter(m);
  const Baseline* ref = reference();
  if (censored && ref == nullptr) return out;
  const double log_time = censored                    ? ref->reference + std::log(kDeadlineRatio)
                          : better_ == Better::Higher ? -std::log(*m.value)
                                                      : std::log(*m.value);
  out.judged = true;
  double y = 0;
  if (ref != nullptr) {
    y = log_time - ref->reference;
    out.y = y;
    compare(out, m, y, censored);
    improve(log_time, y);
  }
  learn(log_time, censored || (ref != nullptr && y > kOutlier));
  return out;
}

void KeyJudge::baselines(std::vector<BaselineView>& out, const Measurement& names) const {
  for (std::size_t i = 0; i < epochs_.size(); ++i) {
    const auto& epoch = epochs_[i];
    BaselineView view;
    view.device = names.device;
    view.canary = names.canary;
    view.metric = names.metric;
    view.epoch = epoch.name;
    view.runs = epoch.baseline ? kBaselineRuns : epoch.runs.size();
    if (epoch.baseline) {
      view.value = std::exp(better_ == Better::Higher ? -epoch.baseline->reference : epoch.baseline->reference);
      view.sigma = epoch.baseline->sigma;
    }
    view.state = epoch.state == Epoch::State::Good        ? "good"
                 : epoch.state == Epoch::State::Regressed ? "regressed"
                                                          : "learning";
    view.last_known_good = good_ && *good_ == i;
    out.push_back(std::move(view));
  }
}

}  // namespace gpuhealth::canary::stats
