// SPDX-License-Identifier: Apache-2.0
// Canaries in the daemon: the scheduler says when, a worker process measures, the watch says what it means. Results are
// kept as lines in a file that gpuhealthctl canary and replay read; at a start the baselines come from there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "canary/scheduler.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"
#include "health/canary_watch.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class CanaryService {
 public:
  // How a worker is started for a device with these arguments.
  struct Launch {
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> stop;  // a command; empty: SIGTERM
    double grace_s = 0;             // that it gets beyond its limit, because something else keeps the limit
  };
  struct Options {
    std::string program;  // gpuhealth-canary, as a plain child where `launch` is empty
    std::function<Launch(const std::string& device, std::vector<std::string> arguments, double limit_s)> launch;
    std::string results;  // STATE/canary/results.jsonl
    canary::ScheduleSettings schedule;
  };
  struct Handlers {
    std::function<std::vector<canary::DeviceSituation>()> devices;  // by PCI address
    std::function<void(const health::CanaryFinding&)> finding;
    std::function<void(Severity, const std::string&)> log;
    // Each result with what it meant, after its findings; and the end of each run. Both may be null.
    std::function<void(const canary::Measurement&, const health::CanaryOutcome&)> measured;
    // `problem`: why no worker could be started.
    std::function<void(const std::string& device, const std::string& problem)> run_ended;
  };
  CanaryService(boost::asio::io_context& io, const Clock& clock, Options options, Handlers handlers);
  ~CanaryService();
  CanaryService(const CanaryService&) = delete;
  CanaryService& operator=(const CanaryService&) = delete;
  void start();
  // What is due is started. To be called with every sample, which is often enough and wakes nobody a second time.
  void look();
  // A person or a rule wants them now; those whose fault was acted on as soon as may be.
  void ask_now(const std::string& pci, int tier);
  void want(const std::string& pci, const std::string& canary);
  // At once, on a busy GPU too. Errors: Exhausted while a canary runs on this GPU or beside it, Unavailable where none
  // may run. Its end comes as run_ended, from the loop.
  Result<void> run_now(const std::string& pci, int tier, std::vector<std::string> only);
  void cancel(const std::string& pci);  // ends what runs on it; run_ended follows
  // Why a GPU has not been measured for long, for people; empty while it is on time.
  [[nodiscard]] std::string overdue(const std::string& pci) const;
  [[nodiscard]] std::vector<canary::stats::BaselineView> baselines() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
