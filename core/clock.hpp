// SPDX-License-Identifier: Apache-2.0
// Time as it is handed to every room: wall time for people and history, steady time for durations. Injected, so that
// tests and replay run a week in a second. CLOCK_BOOTTIME is the steady source: it goes on through a suspend.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpuhealth {

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
using Duration = std::chrono::microseconds;

// Microseconds since boot, suspend included.
struct SteadyTime {
  std::int64_t us = 0;
  friend auto operator<=>(const SteadyTime&, const SteadyTime&) = default;
};
inline Duration operator-(SteadyTime a, SteadyTime b) {
  return Duration(a.us - b.us);
}
inline SteadyTime operator+(SteadyTime a, Duration d) {
  return {a.us + d.count()};
}

struct Now {
  WallTime wall;
  SteadyTime steady;
};

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Now now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Now now() const override;
};

// Real time, `speed` times as fast from the moment it is made: the test clock of simulated machines.
class ScaledClock final : public Clock {
 public:
  explicit ScaledClock(double speed) : speed_(speed), start_(SystemClock().now()) {}
  [[nodiscard]] Now now() const override;

 private:
  double speed_;
  Now start_;
};

// A clock that a test moves by hand.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Now start = {}) : now_(start) {}
  [[nodiscard]] Now now() const override { return now_; }
  void advance(Duration d) {
    now_.wall += d;
    now_.steady = now_.steady + d;
  }
  void step_wall(Duration d) { now_.wall += d; }  // as NTP or a person does; steady time does not follow

 private:
  Now now_;
};

inline std::int64_t to_microseconds(WallTime t) {
  return t.time_since_epoch().count();
}
inline WallTime wall_from_microseconds(std::int64_t us) {
  return WallTime(Duration(us));
}

}  // namespace gpuhealth
