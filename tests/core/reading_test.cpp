// SPDX-License-Identifier: Apache-2.0
#include "core/reading.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpuhealth {
namespace {

TEST(ReadingTable, EveryRowIsFoundByItsNumberAndByItsName) {
  for (const auto& row : all_readings()) {
    EXPECT_EQ(find_reading(row.id), &row) << row.name;
    EXPECT_EQ(find_reading(row.name), &row) << row.name;
  }
}

TEST(ReadingTable, NamesAreUniqueAndRasCountersAreAmongThem) {
  std::set<std::string_view> names;
  for (const auto& row : all_readings()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  EXPECT_TRUE(names.contains("ras.umc.correctable"));
  EXPECT_TRUE(names.contains("ras.xgmi_wafl.uncorrectable"));
  EXPECT_TRUE(names.contains("ras.gfx.deferred"));
}

TEST(ReadingTable, NumbersThatHistoryDatabasesHoldDoNotMove) {
  EXPECT_EQ(static_cast<int>(ReadingId::TemperatureEdge), 0);
  EXPECT_EQ(static_cast<int>(ReadingId::PowerAverage), 15);
  EXPECT_EQ(static_cast<int>(ReadingId::PcieSpeed), 45);
  EXPECT_EQ(static_cast<int>(ras_reading(0, RasKind::Correctable)), 256);
}

TEST(ReadingTable, NumbersThatAreNoReadingAreNull) {
  EXPECT_EQ(find_reading(ReadingId::PlainCount), nullptr);
  EXPECT_EQ(find_reading(static_cast<ReadingId>(255)), nullptr);
  EXPECT_EQ(find_reading(static_cast<ReadingId>(65535)), nullptr);
  EXPECT_EQ(find_reading("temperature.egde"), nullptr);
}

TEST(ReadingStatus, NamesRoundTrip) {
  EXPECT_EQ(to_string(ReadingStatus::SmuDead), "smu-dead");
  EXPECT_EQ(to_string(ReadingStatus::InReset), "in-reset");
  EXPECT_EQ(reading_status_from("asleep"), ReadingStatus::Asleep);
  EXPECT_EQ(reading_status_from("implausible"), ReadingStatus::Implausible);
  EXPECT_FALSE(reading_status_from("Valid"));
}

}  // namespace
}  // namespace gpuhealth
