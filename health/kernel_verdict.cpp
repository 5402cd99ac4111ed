// SPDX-License-Identifier: Apache-2.0
#include "health/kernel_verdict.hpp"

#include <algorithm>

namespace gpuhealth::health {
namespace {

using canary::Measurement;
using canary::Status;
using canary::stats::Level;
using canary::stats::Sprt;
using Answer = KernelJudgement::Answer;

std::string name_of(const canary::stats::Finding& f) {
  return f.device + " " + f.canary + " " + f.metric + " " + std::string(to_string(f.kind));
}

// The noise of the last known good epoch, or twice the least that the metric is known for.
double noise_of(const Measurement& m, std::span<const canary::stats::BaselineView> baselines) {
  for (const auto& b : baselines) {
    if (b.device == m.device && b.canary == m.canary && b.metric == m.metric && b.last_known_good && b.sigma > 0)
      return b.sigma;
  }
  const auto* info = canary::find_canary(m.canary, m.metric);
  return info != nullptr && info->sigma_floor > 0 ? 2 * info->sigma_floor : 0.05;
}

// Compared with another epoch, and not with its own?
bool has_good_epoch(const Measurement& m, std::span<const canary::stats::BaselineView> baselines) {
  return std::ranges::any_of(baselines, [&](const canary::stats::BaselineView& b) {
    return b.device == m.device && b.canary == m.canary && b.metric == m.metric && b.last_known_good &&
           b.epoch != m.epoch;
  });
}

}  // namespace

void KernelVerdict::measured(const Measurement& m, const CanaryOutcome& outcome,
                             std::span<const canary::stats::BaselineView> baselines) {
  Gpu& gpu = seen_[m.device];
  if (m.status == Status::Ok) gpu.measured = true;
  if (m.status == Status::Busy || m.status == Status::Unsupported)
    gpu.hindrance = m.canary + ": " + std::string(to_string(m.status)) + (m.reason.empty() ? "" : ", " + m.reason);
  for (const CanaryFinding& f : outcome.findings) {
    if (f.finding.level == Level::Recovered) {
      open_.erase(name_of(f.finding));
    } else {
      open_[name_of(f.finding)] = f;
    }
  }
  if (!outcome.y || !has_good_epoch(m, baselines)) return;
  const auto [it, fresh] = compared_.try_emplace({m.device, m.canary, m.metric}, noise_of(m, baselines));
  (void)it->second.step(*outcome.y);
}

void KernelVerdict::run_ended(const std::string& device) {
  Gpu& gpu = seen_[device];
  if (gpu.measured) ++gpu.good_runs;
  gpu.measured = false;
}

std::string KernelVerdict::missing() const {
  if (gpus_.empty()) return "there is no GPU to measure";
  for (const std::string& device : gpus_) {
    const auto gpu = seen_.find(device);
    const int runs = gpu == seen_.end() ? 0 : gpu->second.good_runs;
    if (runs >= settings_.runs) continue;
    return device + " has " + std::to_string(runs) + " of " + std::to_string(settings_.runs) + " good runs" +
           (gpu == seen_.end() || gpu->second.hindrance.empty() ? "" : " (" + gpu->second.hindrance + ")");
  }
  return {};
}

std::string KernelVerdict::undecided() const {
  for (const auto& [key, sprt] : compared_) {
    if (sprt.answer() == Sprt::Answer::Undecided) return std::get<1>(key) + " on " + std::get<0>(key);
  }
  return {};
}

KernelJudgement KernelVerdict::judge(SteadyTime now) const {
  if (!faults_.empty()) return {Answer::Failed, faults_.front()};
  const bool late = now - started_ >= settings_.patience;
  for (const auto& [name, f] : open_) {
    if (f.finding.level == Level::Confirmed) return {Answer::Failed, f.finding.detail};
  }
  for (const auto& [key, sprt] : compared_) {
    if (sprt.answer() == Sprt::Answer::Slower)
      return {late ? Answer::Failed : Answer::Waiting,
              std::get<1>(key) + " is slower than under the last known good kernel"};
  }
  if (!open_.empty()) {
    const auto& f = open_.begin()->second.finding;
    return {late ? Answer::Failed : Answer::Waiting, "suspected: " + f.detail};
  }
  if (std::string text = missing(); !text.empty()) return {Answer::Waiting, std::move(text)};
  const std::string open = undecided();
  if (open.empty())
    return {Answer::Passed, compared_.empty() ? "its canaries passed; there is no earlier kernel to compare with"
                                              : "its canaries are as good as under the last known good kernel"};
  if (late) return {Answer::Passed, "its canaries passed; " + open + " is too noisy to be compared"};
  return {Answer::Waiting, open + " is not yet decided"};
}

}  // namespace gpuhealth::health
