// SPDX-License-Identifier: Apache-2.0
#include "cli/ask.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::noon;
using testing::HasSubstr;

TEST(When, TakesPeriodsBeforeNow) {
  EXPECT_EQ(*parse_when("24h", noon()), noon() - std::chrono::hours(24));
  EXPECT_EQ(*parse_when("7d", noon()), noon() - std::chrono::hours(168));
  EXPECT_EQ(*parse_when("90m", noon()), noon() - std::chrono::minutes(90));
  EXPECT_EQ(*parse_when("2w", noon()), noon() - std::chrono::hours(336));
  EXPECT_EQ(*parse_when("now", noon()), noon());
}

TEST(When, TakesLocalDates) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(to_microseconds(*parse_when("2026-11-30", noon())), 1'795'996'800'000'000);
  EXPECT_EQ(to_microseconds(*parse_when("2026-11-30 12:00", noon())), 1'796'040'000'000'000);
  EXPECT_EQ(to_microseconds(*parse_when("2026-11-30T12:00:30", noon())), 1'796'040'030'000'000);
}

TEST(When, RefusesTheRestAndSaysWhatWouldBeRight) {
  for (const char* text : {"", "7", "h", "-3h", "yesterday", "2026-11-31", "2026-13-01", "99999999999d", "24h "}) {
    const auto when = parse_when(text, noon());
    ASSERT_FALSE(when) << text;
    EXPECT_THAT(when.error().text, HasSubstr("24h"));
  }
}

TEST(Metric, IsAReadingWithAHistory) {
  EXPECT_EQ((*parse_metric("temperature.junction"))->id, ReadingId::TemperatureJunction);
}

TEST(Metric, AnUnknownNameGetsTheNearest) {
  EXPECT_THAT(parse_metric("temperature.juncton").error().text, HasSubstr("did you mean temperature.junction?"));
  EXPECT_THAT(parse_metric("Power.Averge").error().text, HasSubstr("did you mean power.average?"));
  EXPECT_THAT(parse_metric("zzzzzzzzzzzzzz").error().text, HasSubstr("temperature.edge, temperature.junction"));
}

TEST(Metric, OneThatIsNotKeptSaysSo) {
  EXPECT_THAT(parse_metric("power.cap_max").error().text, HasSubstr("no history is kept of power.cap_max"));
}

TEST(DeviceChoice, TakesAddressIdAndPartsOfEither) {
  const auto machine = samples::healthy();
  EXPECT_EQ((*choose_device(machine.devices, "0000:03:00.0"))->pci, "0000:03:00.0");
  EXPECT_EQ((*choose_device(machine.devices, "c3:00.0"))->pci, "0000:c3:00.0");
  EXPECT_EQ((*choose_device(machine.devices, "uid-49"))->pci, "0000:03:00.0");
  EXPECT_EQ((*choose_device(machine.devices, "mi300x"))->pci, "0000:c3:00.0");
}

TEST(DeviceChoice, WhatFitsSeveralOrNoneIsRefusedWithAList) {
  const auto machine = samples::healthy();
  for (const char* text : {"radeon", "nvidia", "", "04:00.0"}) {
    const auto device = choose_device(machine.devices, text);
    ASSERT_FALSE(device) << text;
    EXPECT_EQ(device.error().code, ErrorCode::NotFound);
    EXPECT_THAT(device.error().text, HasSubstr("0000:09:00.0  Radeon RX 580 Series"));
  }
  EXPECT_THAT(choose_device({}, "x").error().text, HasSubstr("there is no GPU"));
}

TEST(ConditionChoice, TakesAnIdOrItsUniqueBeginning) {
  const auto machine = samples::overheating();
  EXPECT_EQ((*choose_condition(machine.conditions, "over"))->type, ConditionType::Overheating);
  EXPECT_THAT(choose_condition(machine.conditions, "gone").error().text, HasSubstr("conditions --all"));
  auto twice = machine.conditions;
  twice.push_back(twice.back());
  twice.back().id += "1";
  EXPECT_THAT(choose_condition(twice, "over").error().text, HasSubstr("fits several"));
}

}  // namespace
}  // namespace gpuhealth::cli
