// SPDX-License-Identifier: Apache-2.0
// Sliding windows over steady time, for detectors that judge a share or a count rather than one look.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/clock.hpp"

namespace gpuhealth::health {

// The time-weighted mean of a value over the last stretch of time, and over thirty samples at least: of few, one counts
// too much.
class ShareWindow {
 public:
  void add(double value, SteadyTime now, Duration width);
  void restart() { parts_.clear(), last_.reset(); }
  // Nothing until half of the window has been seen.
  [[nodiscard]] std::optional<double> share(Duration width) const;
  [[nodiscard]] Duration covered() const;

 private:
  struct Part {
    SteadyTime end;
    Duration length{};
    double value = 0;
  };
  std::deque<Part> parts_;
  std::optional<SteadyTime> last_;
};

// How much a counter rose in the last hour. The first value is the baseline; a counter that falls has restarted.
class CounterWindow {
 public:
  void add(double count, SteadyTime now);
  void rebase() { last_.reset(); }
  [[nodiscard]] double rise() const { return rise_; }

 private:
  struct Minute {
    std::int64_t number = 0;
    double rise = 0;
  };
  std::deque<Minute> minutes_;
  std::optional<double> last_;
  double rise_ = 0;
};

}  // namespace gpuhealth::health
