// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reading_rules.hpp"

#include <cerrno>

namespace gpuhealth::telemetry {

ReadingStatus status_of_failure(const FailedRead& failed) {
  switch (failed.sys_errno) {
    case EPERM:
    case EBUSY:
      return failed.suspended ? ReadingStatus::Asleep : ReadingStatus::InReset;
    case EOPNOTSUPP:
      return failed.worked ? ReadingStatus::SmuDead : ReadingStatus::Unsupported;
    case ETIME:
    case EREMOTEIO:
      return failed.worked ? ReadingStatus::SmuDead : ReadingStatus::Unreadable;
    case ENODATA:
    case ENOENT:
      return failed.worked ? ReadingStatus::Unreadable : ReadingStatus::Unsupported;
    default:
      return ReadingStatus::Unreadable;
  }
}

ReadingStatus status_of_empty(bool worked, bool table) {
  if (worked) return ReadingStatus::SmuDead;  // the driver prints a bare newline when the firmware does not answer
  return table ? ReadingStatus::Unsupported : ReadingStatus::Unreadable;
}

}  // namespace gpuhealth::telemetry
