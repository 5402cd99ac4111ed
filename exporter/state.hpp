// SPDX-License-Identifier: Apache-2.0
// What is served: the daemon's last answer, and what the canaries' results say. A scrape reads this and nothing else,
// so that it never waits for bus, daemon or GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "canary/stats/judge.hpp"
#include "core/clock.hpp"
#include "dbus/client.hpp"

namespace gpuhealth::exporter {

// The last run of one metric of one canary on one device.
struct CanaryLast {
  std::string device;  // PCI address
  std::string canary, metric;
  canary::Status status{};
  double time = 0;              // seconds since 1970
  std::optional<double> ratio;  // how many times its baseline it takes; nothing while there is none
};

struct CanaryState {
  bool readable = false;
  std::vector<CanaryLast> last;
  std::vector<canary::stats::Finding> open;
};

// What this program itself has used.
struct OwnCost {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double start_time = 0;  // seconds since 1970
  double open_files = 0;
};

struct State {
  std::optional<dbus::Snapshot> snapshot;  // nothing: the daemon did not answer the last question
  WallTime answered;                       // when it last answered; 1970: never
  double ask_seconds = 0;                  // how long that took
  CanaryState canaries;
};

}  // namespace gpuhealth::exporter
