// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reading_rules.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace gpuhealth::telemetry {
namespace {

TEST(FailedRead, EpermAndEbusyAreStatesAndNeverPermission) {
  for (const int error : {EPERM, EBUSY}) {
    EXPECT_EQ(status_of_failure({error, true, true}), ReadingStatus::Asleep);
    EXPECT_EQ(status_of_failure({error, true, false}), ReadingStatus::InReset);
    EXPECT_EQ(status_of_failure({error, false, false}), ReadingStatus::InReset);
  }
}

TEST(FailedRead, OpnotsuppAfterSuccessIsADeadSmu) {
  EXPECT_EQ(status_of_failure({EOPNOTSUPP, true, false}), ReadingStatus::SmuDead);
  EXPECT_EQ(status_of_failure({EOPNOTSUPP, false, false}), ReadingStatus::Unsupported);
}

TEST(FailedRead, MailboxErrorsAfterSuccessAreADeadSmu) {
  EXPECT_EQ(status_of_failure({ETIME, true, false}), ReadingStatus::SmuDead);
  EXPECT_EQ(status_of_failure({EREMOTEIO, true, false}), ReadingStatus::SmuDead);
  EXPECT_EQ(status_of_failure({ETIME, false, false}), ReadingStatus::Unreadable);
}

TEST(FailedRead, OtherErrorsAreSaidAsTheyAre) {
  EXPECT_EQ(status_of_failure({EIO, true, false}), ReadingStatus::Unreadable);
  EXPECT_EQ(status_of_failure({EACCES, false, false}), ReadingStatus::Unreadable);
  EXPECT_EQ(status_of_failure({EINVAL, true, false}), ReadingStatus::Unreadable);
  EXPECT_EQ(status_of_failure({ENODEV, true, false}), ReadingStatus::Unreadable);
}

TEST(FailedRead, NoDataIsAPartWithoutThatCounter) {
  EXPECT_EQ(status_of_failure({ENODATA, false, false}), ReadingStatus::Unsupported);
}

TEST(EmptyRead, AnEmptyTableHasNoLevelsAndAnEmptyLimitIsAFailedQuery) {
  EXPECT_EQ(status_of_empty(false, true), ReadingStatus::Unsupported);
  EXPECT_EQ(status_of_empty(false, false), ReadingStatus::Unreadable);
  EXPECT_EQ(status_of_empty(true, false), ReadingStatus::SmuDead);
}

}  // namespace
}  // namespace gpuhealth::telemetry
