// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::noon;

TEST(Json, IntegralNumbersAreIntegersAndTheRestKeepsItsDigits) {
  EXPECT_EQ(dump(number(45)), "45");
  EXPECT_EQ(dump(number(-3)), "-3");
  EXPECT_EQ(dump(number(45.5)), "45.5");
  EXPECT_EQ(dump(number(3103 * 0.001)), "3.103");  // 3.1029999999999998 to a machine
  EXPECT_EQ(dump(number(123456.789012)), "123456.789012");
  EXPECT_EQ(dump(number(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(Json, IsAsciiWithoutControlsWhateverTheHardwareSays) {
  const std::string text = dump(Json{{"name", "\x1b[2J\x9b™\x7f"}});
  for (const unsigned char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x80)) << int{c};
}

TEST(Json, TimesAreUtc) {
  EXPECT_EQ(time_or_null(noon()), "2026-11-30T12:00:00Z");
  EXPECT_TRUE(time_or_null(WallTime()).is_null());
}

TEST(ReadingJson, HasErrnoOnlyWhereAReadFailed) {
  EXPECT_EQ(dump(json_reading({ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, 45}), false),
            R"({"value":45,"unit":"C","status":"valid"})");
  EXPECT_EQ(dump(json_reading({ReadingId::PowerAverage, ReadingStatus::Unreadable, 5, 0}), false),
            R"({"value":null,"unit":"W","status":"unreadable","errno":5,"error":"EIO"})");
  EXPECT_EQ(dump(json_reading({ReadingId::PowerAverage, ReadingStatus::Stale, 0, 12}), false),
            R"({"value":12,"unit":"W","status":"stale"})");
}

TEST(MetricsJson, CountersAreExactAndSentinelsNull) {
  EXPECT_EQ(dump(json_metrics(samples::metrics()), false),
            R"({"format":1,"content":3,"structure_size":120,"status":"truncated",)"
            R"("note":"the file ends after 60 of 120 bytes","fields":{"temperature_edge":45,)"
            R"("system_clock_counter":18446744073709551614,"temperature_hbm":[null,51],"average_mm_activity":null}})");
}

TEST(InspectJson, KeepsTheContract) {
  const std::vector<std::vector<Condition>> conditions = {
      {}, {samples::condition(ConditionType::Overheating, samples::radeon(), "hot")}};
  const Json json = json_inspect(samples::inspection(), conditions);
  ASSERT_EQ(json["devices"].size(), 2U);
  const Json& d = json["devices"][0];  // sorted by address
  EXPECT_EQ(d["pci"], "0000:03:00.0");
  EXPECT_EQ(d["vendor_id"], "0x1002");
  EXPECT_EQ(d["subsystem_id"], "0x1da2:0xe471");
  EXPECT_EQ(d["runtime_status"], "active");
  EXPECT_TRUE(d["unique_id"].is_null());
  EXPECT_EQ(dump(d["readings"]["temperature.edge"], false),
            R"({"value":45,"unit":"C","status":"valid","source":"hwmon/hwmon3/temp1_input"})");
  EXPECT_EQ(d["readings"]["power.average"]["errno"], 5);
  EXPECT_EQ(d["throttle_reasons"], Json::array({"PPT0"}));
  EXPECT_EQ(d["throttle_reasons_gated"], Json::array({"TEMP_HOTSPOT"}));
  EXPECT_EQ(d["gpu_metrics"]["fields"]["temperature_edge"], 45);
  EXPECT_EQ(d["conditions"][0]["type"], "overheating");
  EXPECT_EQ(d["conditions"][0]["severity"], "critical");
  EXPECT_EQ(dump(json["amdgpu"], false), R"({"version":null,"srcversion":"9B3E1A0C5D7F","parameters":{"runpm":"-1"}})");
  const Json& other = json["devices"][1];
  for (const char* key : {"subsystem_id", "driver", "name", "runtime_status", "gpu_metrics"})
    EXPECT_TRUE(other[key].is_null()) << key;
}

TEST(InspectJson, EveryPlainReadingAppearsAndRasOnlyWhereItIs) {
  const Json readings = json_inspect(samples::inspection(), {})["devices"][0]["readings"];
  EXPECT_EQ(readings.size(), kPlainReadingCount + 1);
  EXPECT_EQ(dump(readings["fan.rpm"], false), R"({"value":null,"unit":"rpm","status":"unsupported"})");
  EXPECT_EQ(readings["ras.umc.correctable"]["value"], 7);
  EXPECT_FALSE(readings.contains("ras.umc.deferred"));
}

TEST(StatusJson, SaysWhetherTheMachineIsHealthy) {
  const Json good = json_status(samples::healthy());
  EXPECT_EQ(good["healthy"], true);
  EXPECT_TRUE(good["daemon"]["store_problem"].is_null());
  EXPECT_EQ(good["daemon"]["last_sample"], "2026-11-30T11:59:58Z");
  const Json bad = json_status(samples::overheating());
  EXPECT_EQ(bad["healthy"], false);
  EXPECT_EQ(bad["conditions"][0]["type"], "overheating");  // worst first
  EXPECT_EQ(bad["conditions"][0]["evidence"][0]["name"], "temperature.junction");
  EXPECT_TRUE(bad["conditions"][0]["cleared"].is_null());
}

TEST(DevicesJson, WhatIsNotKnownIsNull) {
  auto device = samples::sleeping();
  device.name.clear();
  const Json json = json_devices({&device, 1})["devices"][0];
  EXPECT_TRUE(json["name"].is_null());
  EXPECT_TRUE(json["unique_id"].is_null());
  EXPECT_EQ(json["readings"]["temperature.edge"]["status"], "asleep");
}

TEST(HistoryJson, HasOneListOfPointsADevice) {
  Series s;
  s.device = "uid-1";
  s.pci = "0000:03:00.0";
  s.label = "GPU";
  s.metric = find_reading("temperature.edge");
  s.points = {{noon(), 31, 40.5, 52}};
  const Json json = json_history(*s.metric, noon(), noon(), {&s, 1});
  EXPECT_EQ(json["unit"], "C");
  EXPECT_EQ(dump(json["devices"][0]["points"], false),
            R"([{"time":"2026-11-30T12:00:00Z","min":31,"mean":40.5,"max":52}])");
}

}  // namespace
}  // namespace gpuhealth::cli
