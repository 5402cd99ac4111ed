// SPDX-License-Identifier: Apache-2.0
#include "canary/measurement.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpuhealth::canary {
namespace {

TEST(Measurement, ALineWithWhatIsNeededIsTaken) {
  const auto m = parse_measurement(
      R"({"canary":"triad","value":801.5,"time":"2026-11-30T14:02:07Z","epoch":"6.12.57","device":"0000:03:00.0"})");
  ASSERT_TRUE(m) << m.error().text;
  EXPECT_EQ(m->metric, "bandwidth");
  EXPECT_EQ(m->unit, "GB/s");
  EXPECT_EQ(m->better, Better::Higher);
  EXPECT_EQ(m->status, Status::Ok);
  EXPECT_EQ(m->value, 801.5);
  EXPECT_EQ(m->time, 1796047327);
  EXPECT_EQ(m->gate, Gate::Unknown);
}

TEST(Measurement, AnEpochMayBeItsFields) {
  const auto m = parse_measurement(R"({"canary":"x","value":1,"epoch":{"kernel":"6.12.57","vbios":"113"}})");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->software.at("kernel"), "6.12.57");
  EXPECT_EQ(m->epoch.size(), 16U);
  EXPECT_EQ(m->epoch,
            parse_measurement(R"({"canary":"y","value":2,"epoch":{"vbios":"113","kernel":"6.12.57"}})")->epoch);
}

TEST(Measurement, WhatIsWrittenReadsTheSame) {
  Measurement m;
  m.canary = "h2d_file_rw";
  m.metric = "worst";
  m.unit = "ms";
  m.value = 2005.25;
  m.status = Status::Busy;
  m.reason = "pid 4 \"x\"";
  m.backend = "hip";
  m.device = "0000:03:00.0";
  m.time = 1796047327.5;
  m.software = {{"kernel", "7.0.12"}};
  m.epoch = epoch_of(m.software);
  m.gate = Gate::Strong;
  m.mappings = {{2005, 2, 1990, 2}};
  m.environment = {{"HSA_USERPTR_FOR_PAGED_MEM", "0"}};
  m.samples = 3;
  const auto again = parse_measurement(to_json_line(m));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(to_json_line(*again), to_json_line(m));
  EXPECT_EQ(again->mappings.at(0).ms, 2005);
  EXPECT_DOUBLE_EQ(again->time, 1796047327.5);
}

TEST(Measurement, BrokenLinesAreRefusedWithWhatIsWrong) {
  for (const char* line :
       {"", "{", "[]", "null", R"({"canary":1,"value":1})", R"({"value":1})", R"({"canary":"x","value":"fast"})",
        R"({"canary":"x","value":1e999})", R"({"canary":"x","value":NaN})", R"({"canary":"x"})",
        R"({"canary":"x","value":1,"status":"fine"})", R"({"canary":"x","value":1,"time":"yesterday"})",
        R"({"canary":"x","value":1,"mappings":[{"slots":0}]})", R"({"canary":"x","value":1,"mappings":{}})",
        R"({"canary":"x","value":1,"tier":9})", R"({"canary":"x","value":1}{"canary":"y","value":1})"}) {
    const auto m = parse_measurement(line);
    ASSERT_FALSE(m) << line;
    EXPECT_EQ(m.error().code, ErrorCode::InvalidInput) << line;
    EXPECT_FALSE(m.error().text.empty()) << line;
  }
  EXPECT_FALSE(parse_measurement("{\"canary\":\"" + std::string(70000, 'x') + "\",\"value\":1}"));
}

TEST(Canaries, NamesAreInOneRunSoThatARangeHoldsThem) {
  std::set<std::string_view> done;
  std::string_view last;
  for (const auto& row : all_canaries()) {
    if (row.canary != last) {
      EXPECT_TRUE(done.insert(row.canary).second) << row.canary;
    }
    last = row.canary;
  }
  EXPECT_EQ(metrics_of("launch_rtt").size(), 2U);
  EXPECT_TRUE(metrics_of("bogus").empty());
}

TEST(Epoch, FieldsDoNotRunTogether) {
  EXPECT_NE(epoch_of({{"a", "bc"}}), epoch_of({{"ab", "c"}}));
}

}  // namespace
}  // namespace gpuhealth::canary
