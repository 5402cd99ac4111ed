// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::units {
namespace {

using namespace std::chrono_literals;

TEST(Units, TimesHaveOneUnit) {
  EXPECT_EQ(parse_duration("90s").value(), 90s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("5 min").value(), 5min);
  EXPECT_EQ(parse_duration("1.5h").value(), 90min);
  EXPECT_EQ(parse_duration("7d").value(), 168h);
  EXPECT_EQ(parse_duration("2w").value(), 336h);
  EXPECT_EQ(parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(parse_duration("0").error().text, "lacks its unit; write 0s");
  for (const char* text : {"", "s", "5", "5x", "-1s", "1e3s", "nan s", "inf", "9999999d", "5m5s", " 5m", "5m "})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Units, TimesAreWrittenAsPeopleDo) {
  EXPECT_EQ(text_of(Duration(90s)), "1m30s");
  EXPECT_EQ(text_of(Duration(24h)), "1d");
  EXPECT_EQ(text_of(Duration(0s)), "0s");
  EXPECT_EQ(text_of(Duration(1500ms)), "1s500ms");
}

TEST(Units, QuantitiesHaveTheUnitOfTheReading) {
  EXPECT_EQ(parse_quantity("95 C", Unit::Celsius).value(), 95);
  EXPECT_EQ(parse_quantity("95°C", Unit::Celsius).value(), 95);
  EXPECT_EQ(parse_quantity("1.5 GHz", Unit::Megahertz).value(), 1500);
  EXPECT_EQ(parse_quantity("16GiB", Unit::Byte).value(), 17179869184.0);
  EXPECT_EQ(parse_quantity("x8", Unit::Lane).value(), 8);
  EXPECT_EQ(parse_quantity("3", Unit::Count).value(), 3);
  EXPECT_FALSE(parse_quantity("95", Unit::Celsius));
  EXPECT_FALSE(parse_quantity("95 F", Unit::Celsius));
  EXPECT_FALSE(parse_quantity("C", Unit::Celsius));
}

TEST(Units, DaysThatDoNotExistAreNone) {
  EXPECT_EQ(text_of(parse_last_day("2028-02-29").value()), "2028-03-01T00:00:00Z") << "the day itself still counts";
  for (const char* text :
       {"2027-02-29", "2027-13-01", "2027-00-10", "27-01-01", "2027-1-1", "2027-01-01x", "", "----------"})
    EXPECT_FALSE(parse_last_day(text)) << text;
}

TEST(Units, WindowsAreLocalAndMayGoOverMidnight) {
  const WallTime monday(std::chrono::sys_days(std::chrono::year(2026) / 11 / 30));
  const auto night = parse_window("Mon-Fri 22:00-06:00").value();
  EXPECT_TRUE(within(night, monday + 23h, 0));
  EXPECT_TRUE(within(night, monday + 29h, 0)) << "Tuesday morning belongs to Monday's night";
  EXPECT_FALSE(within(night, monday + 5h, 0)) << "Monday morning belongs to Sunday's";
  EXPECT_FALSE(within(night, monday + 30h, 0));
  EXPECT_TRUE(within(night, monday + 21h, 3600));
  EXPECT_TRUE(within(parse_window("Sat,Mon 00:00-24:00").value(), monday, 0));
  EXPECT_FALSE(within(parse_window("Sat,Sun 00:00-24:00").value(), monday, 0));
  for (const char* text : {"", "8-18", "08:00", "08:00-08:00", "24:00-25:00", "Mon 8:00-9:00", "Foo 08:00-09:00",
                           "Mon- 08:00-09:00", "08:60-09:00"})
    EXPECT_FALSE(parse_window(text)) << text;
}

TEST(Units, PatternsMatchAsInAShell) {
  EXPECT_TRUE(matches("gfx11*", "gfx1100"));
  EXPECT_TRUE(matches("*7900*XTX", "Radeon RX 7900 XTX"));
  EXPECT_TRUE(matches("NODE-?", "node-7"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("gfx11", "gfx1100"));
  EXPECT_FALSE(matches("", "x"));
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a'))) << "and quickly";
}

}  // namespace
}  // namespace gpuhealth::units
