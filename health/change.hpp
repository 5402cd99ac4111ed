// SPDX-License-Identifier: Apache-2.0
// What the engine reports: one step in the life of one condition.
#pragma once

#include <cstdint>

#include "core/condition.hpp"

namespace gpuhealth::health {

// Raised: seen, told to nobody; a raised condition that goes away unconfirmed ends with Cleared and need not be kept.
// Where nothing needs to be waited for, Confirmed comes at once, with no Raised before it.
// Updated: a confirmed condition changed its severity, or what its evidence is about (not a number in it).
enum class ChangeKind : std::uint8_t { Raised, Confirmed, Updated, Acknowledged, Cleared };

struct Change {
  ChangeKind kind{};
  Condition condition;         // as it is after the change
  bool was_confirmed = false;  // of Cleared: false when it ends without ever having been announced
};

}  // namespace gpuhealth::health
