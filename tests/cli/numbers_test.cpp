// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

TEST(Numbers, HaveTheirUnitAndNoInventedDigits) {
  EXPECT_EQ(format_value(45, Unit::Celsius), "45 C");
  EXPECT_EQ(format_value(45.25, Unit::Celsius), "45.2 C");
  EXPECT_EQ(format_value(287.4, Unit::Watt), "287 W");
  EXPECT_EQ(format_value(98, Unit::Percent), "98%");
  EXPECT_EQ(format_value(16, Unit::Lane), "x16");
  EXPECT_EQ(format_value(2.5, Unit::GigatransferPerSecond), "2.5 GT/s");
  EXPECT_EQ(format_value(123456789, Unit::Count), "123456789");
}

TEST(Numbers, BytesTakeTheLargestUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(536'870'912), "512 MiB");
  EXPECT_EQ(format_bytes(25'753'026'560.0), "24 GiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

TEST(Numbers, AReadingWithoutValueSaysWhy) {
  EXPECT_EQ(format_reading({ReadingId::PowerAverage, ReadingStatus::Asleep, EPERM, 0}), "asleep");
  EXPECT_EQ(format_reading({ReadingId::PowerAverage, ReadingStatus::Unreadable, EIO, 0}),
            "cannot be read (Input/output error)");
  EXPECT_EQ(format_reading({ReadingId::PowerAverage, ReadingStatus::Stale, 0, 45}), "45 W (out of date)");
  EXPECT_EQ(format_reading({ReadingId::FanRpm, ReadingStatus::Valid, 0, 0}), "0 rpm");
}

TEST(Numbers, DurationsAreReadAsPeopleSayThem) {
  EXPECT_EQ(format_duration(std::chrono::seconds(5)), "5 s");
  EXPECT_EQ(format_duration(std::chrono::seconds(185)), "3 min");
  EXPECT_EQ(format_duration(std::chrono::minutes(125)), "2 h 5 min");
  EXPECT_EQ(format_duration(std::chrono::hours(24)), "1 day");
  EXPECT_EQ(format_duration(std::chrono::hours(100)), "4 days");
  EXPECT_EQ(format_duration(std::chrono::seconds(-5)), "0 s");
}

TEST(Numbers, TimesAreShortWhenTheyAreNear) {
  setenv("TZ", "UTC", 1);
  tzset();
  const WallTime noon = samples::noon();
  EXPECT_EQ(format_time(noon), "2026-11-30 12:00:00");
  EXPECT_EQ(format_time_short(noon - std::chrono::hours(2), noon), "10:00");
  EXPECT_EQ(format_time_short(noon - std::chrono::hours(24), noon), "Sun 12:00");
  EXPECT_EQ(format_time_short(noon - std::chrono::hours(24 * 20), noon), "2026-11-10 12:00");
}

TEST(Numbers, LinkSpeedsAreGenerations) {
  EXPECT_EQ(format_link_speed(2.5), "Gen1");
  EXPECT_EQ(format_link_speed(16), "Gen4");
  EXPECT_EQ(format_link_speed(3), "3 GT/s");
}

TEST(Numbers, ErrnoHasANameAndAText) {
  EXPECT_EQ(errno_name(EIO), "EIO");
  EXPECT_EQ(errno_text(EIO), "Input/output error");
  EXPECT_EQ(errno_name(9999), "errno 9999");
}

}  // namespace
}  // namespace gpuhealth::cli
