// SPDX-License-Identifier: Apache-2.0
// Is the kernel that runs as good as the last known good one? From the canaries' results of this boot alone; pure, time
// comes with each question. docs/kernel-selection.md has the rules.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "canary/stats/detectors.hpp"
#include "core/clock.hpp"
#include "health/canary_watch.hpp"

namespace gpuhealth::health {

struct KernelJudgement {
  enum class Answer : std::uint8_t { Waiting, Passed, Failed };
  Answer answer = Answer::Waiting;
  std::string why;  // one sentence
};

class KernelVerdict {
 public:
  struct Settings {
    int runs = 6;                                  // good runs of each GPU, as many as the comparison of epochs needs
    Duration patience = std::chrono::minutes(15);  // then what is not decided is left at that
  };
  KernelVerdict(Settings settings, SteadyTime started) : settings_(settings), started_(started) {}

  // PCI addresses of the GPUs that are to be measured.
  void gpus(std::vector<std::string> devices) { gpus_ = std::move(devices); }
  void measured(const canary::Measurement& m, const CanaryOutcome& outcome,
                std::span<const canary::stats::BaselineView> baselines);
  void run_ended(const std::string& device);
  // A fault that was not there before this boot: a GPU is lost, its driver hangs …
  void fault(std::string what) { faults_.push_back(std::move(what)); }

  [[nodiscard]] KernelJudgement judge(SteadyTime now) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // device, canary, metric
  struct Gpu {
    int good_runs = 0;
    bool measured = false;  // something, in the run that goes on
    std::string hindrance;  // why nothing was measured last
  };
  [[nodiscard]] std::string missing() const;
  [[nodiscard]] std::string undecided() const;

  Settings settings_;
  SteadyTime started_;
  std::vector<std::string> gpus_;
  std::map<std::string, Gpu> seen_;
  std::map<Key, canary::stats::Sprt> compared_;
  std::map<std::string, CanaryFinding> open_;
  std::vector<std::string> faults_;
};

}  // namespace gpuhealth::health
