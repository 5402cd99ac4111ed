// SPDX-License-Identifier: Apache-2.0
// Is the GPU really working? The busy percentage alone does not say so: it sticks at 100 on some parts and after hangs
// (drm/amd 1932, 3482; MangoHud 329; lilbee 675), so load needs a second sign.
#pragma once

#include <optional>
#include <string>

#include "core/device.hpp"
#include "core/sample.hpp"
#include "health/thresholds.hpp"

namespace gpuhealth::health {

struct Load {
  std::optional<double> busy;  // percent; nothing where the part's figure cannot be believed, or just after a wake-up
  std::string sign;            // the second sign, for people: "power 250 W"; empty when there is none
  bool above_idle = false;     // weaker second sign: power well above what this GPU drew when idle
  bool sustained = false;      // busy with a second sign, for long enough to judge the link's width
  bool heavy = false;          // heavily busy with a second sign, for long enough to judge the link's speed

  [[nodiscard]] bool at_least(double percent) const { return busy && *busy >= percent && !sign.empty(); }
};

// Follows one device from look to look.
class LoadTracker {
 public:
  // `continuous`: this sample follows the one before without a gap or a sleep.
  Load follow(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds, bool continuous);

 private:
  // How long, and for how many samples in a row, something has held.
  struct Streak {
    std::optional<SteadyTime> since;
    double samples = 0;
    void step(bool holds, SteadyTime now);
    [[nodiscard]] bool lasts(SteadyTime now, double seconds, double at_least) const;
  };
  std::optional<SteadyTime> awake_since_;
  std::optional<double> idle_power_w_;
  Streak busy_;
  Streak heavy_;
};

// What one look alone says of the load: time is taken to have passed.
Load load_at_once(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds);

}  // namespace gpuhealth::health
