// SPDX-License-Identifier: Apache-2.0
// How a failed or odd read becomes a status (amdgpu reference 1.2).
#pragma once

#include "core/reading.hpp"

namespace gpuhealth::telemetry {

struct FailedRead {
  int sys_errno = 0;
  bool worked = false;     // this reading has been valid since the driver was bound
  bool suspended = false;  // runtime_status says so, read again after the failure
};

// EPERM and EBUSY mean asleep or in reset, never permission; EOPNOTSUPP after success means that the management
// firmware is dead (the driver's sensor wrapper turns every failure into it), before any success that the part lacks
// it.
ReadingStatus status_of_failure(const FailedRead& failed);

// A read that succeeded and held nothing. `table`: an empty table says that the part has no levels.
ReadingStatus status_of_empty(bool worked, bool table);

}  // namespace gpuhealth::telemetry
