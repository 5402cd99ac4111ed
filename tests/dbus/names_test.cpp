// SPDX-License-Identifier: Apache-2.0
#include "dbus/names.hpp"

#include <gtest/gtest.h>

#include "tests/dbus/fixtures.hpp"

namespace gpuhealth::dbus {
namespace {

TEST(BusNames, IdsBecomePathsThatTheBusTakes) {
  EXPECT_EQ(device_path(test::kCardId), test::kCardPath);
  EXPECT_EQ(condition_path(test::kHotId), test::kHotPath);
  EXPECT_EQ(device_path("pci-0000:03:00.0"), "/org/gpuhealth1/device/pci_2d0000_3a03_3a00_2e0");
  EXPECT_EQ(device_path(""), "/org/gpuhealth1/device/_");
}

TEST(BusNames, EachErrorCodeSurvivesTheWayThereAndBack) {
  for (const auto code : {ErrorCode::NotFound, ErrorCode::Unreadable, ErrorCode::InvalidInput, ErrorCode::NotPermitted,
                          ErrorCode::Unavailable, ErrorCode::Exhausted, ErrorCode::Internal})
    EXPECT_EQ(error_code(error_name(code)), code);
  EXPECT_STREQ(error_name(ErrorCode::NotFound), "org.gpuhealth1.Error.NotFound");
}

TEST(BusNames, ErrorsOfTheBusItselfHaveACode) {
  EXPECT_EQ(error_code("org.freedesktop.DBus.Error.ServiceUnknown"), ErrorCode::Unavailable);
  EXPECT_EQ(error_code("org.freedesktop.DBus.Error.Spawn.ChildExited"), ErrorCode::Unavailable);
  EXPECT_EQ(error_code("org.freedesktop.DBus.Error.AccessDenied"), ErrorCode::NotPermitted);
  EXPECT_EQ(error_code("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"), ErrorCode::NotPermitted);
  EXPECT_EQ(error_code("org.freedesktop.DBus.Error.UnknownObject"), ErrorCode::NotFound);
  EXPECT_EQ(error_code("org.example.Error.Odd"), ErrorCode::Internal);
}

}  // namespace
}  // namespace gpuhealth::dbus
