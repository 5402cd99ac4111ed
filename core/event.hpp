// SPDX-License-Identifier: Apache-2.0
// Something that happened once: a device came or went, a reader was replaced, a condition changed its state.
#pragma once

#include <string>

#include "core/clock.hpp"
#include "core/condition.hpp"

namespace gpuhealth {

struct Event {
  WallTime time;
  std::string type;  // "device.added", "device.removed", "device.stuck", "condition.confirmed", "store.set_aside", …
  Severity severity = Severity::Info;
  std::string device;  // DeviceInfo::id(); empty when it concerns the machine
  std::string text;    // one sentence
  std::string boot_id;
};

}  // namespace gpuhealth
