// SPDX-License-Identifier: Apache-2.0
// What a detector is: it sees one look at one device and says bad, good or nothing. The engine knows no detector; the
// table in detectors.cpp names them all. A detector object belongs to one device and keeps what it must remember of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/sample.hpp"
#include "health/load.hpp"
#include "health/signs.hpp"
#include "health/thresholds.hpp"

namespace gpuhealth::health {

struct Verdict {
  // Unknown: this look says nothing either way: a reading is missing, the GPU is idle, or the value lies between the
  // threshold that raises and the one that clears.
  enum class Kind : std::uint8_t { Unknown, Good, Bad };
  Kind kind = Kind::Unknown;
  Severity severity = Severity::Warning;
  bool urgent = false;  // confirmed at the second look, whatever the time
  std::string detail;
  std::vector<Evidence> evidence;

  static Verdict unknown() { return {}; }
  static Verdict good() {
    Verdict verdict;
    verdict.kind = Kind::Good;
    return verdict;
  }
};

struct Look {
  const DeviceInfo& device;
  const Sample& sample;
  const Thresholds& thresholds;
  const Load& load;
  bool continuous = false;              // follows the look before it without a gap or a sleep
  bool once = false;                    // the only look there will be: what needs time cannot be judged
  const ClientLook* clients = nullptr;  // who uses it, as of the last look; null when nobody looks
  const Sample* second = nullptr;       // what the other source said at its last turn; null where there is none
  const SignMemory* signs = nullptr;    // what the kernel has said of the device; null when nobody listens
  std::optional<double> own_cap = {};   // W, a power limit that an action of gpuhealthd has in force
};

class Detector {
 public:
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;
  virtual ~Detector() = default;
  virtual Verdict judge(const Look& look) = 0;
};

// What a runtime-suspended GPU means for a condition.
enum class WhenAsleep : std::uint8_t {
  Wait,   // nothing: it is judged again when the GPU wakes
  Ends,   // good: a GPU without power is neither hot nor slowed
  Judge,  // the detector is asked all the same
};

struct DetectorRow {
  ConditionType type;
  std::unique_ptr<Detector> (*make)();
  double Thresholds::* confirm_after_s;
  double Thresholds::* clear_after_s;
  WhenAsleep when_asleep;
  bool one_look_suffices;  // for gpuhealthctl inspect
};
std::span<const DetectorRow> all_detectors();

}  // namespace gpuhealth::health
