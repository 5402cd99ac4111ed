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
  struct Options {
    std::string program;  // gpuhealth-canary
    std::string results;  // STATE/canary/results.jsonl
    canary::ScheduleSettings schedule;
  };
  struct Handlers {
    std::function<std::vector<canary::DeviceSituation>()> devices;  // by PCI address
    std::function<void(const health::CanaryFinding&)> finding;
    std::function<void(Severity, const std::string&)> log;
  };
  CanaryService(boost::asio::io_context& io, const Clock& clock, Options options, Handlers handlers);
  ~CanaryService();
  CanaryService(const CanaryService&) = delete;
  CanaryService& operator=(const CanaryService&) = delete;
  void start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
