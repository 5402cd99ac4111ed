// SPDX-License-Identifier: Apache-2.0
// docs/json.md is the contract: what is emitted is in it, and its tables are those of core/.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cli/json.hpp"
#include "core/exit_codes.hpp"
#include "samples.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::cli {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Maps whose keys are data, not contract: names of readings, fields of a metrics table, parts with firmware.
const std::set<std::string> kOpenMaps = {"readings", "fields", "firmware"};

void collect(const Json& json, std::set<std::string>& keys) {
  if (json.is_array()) {
    for (const Json& item : json) collect(item, keys);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (kOpenMaps.contains(key)) {
      for (const auto& [name, item] : value.items()) collect(item, keys);
    } else {
      collect(value, keys);
    }
  }
}

std::set<std::string> emitted_keys() {
  const auto machine = samples::overheating();
  const std::vector<std::vector<Condition>> conditions = {{}, machine.conditions};
  Series s;
  s.metric = find_reading("temperature.edge");
  s.points = {{samples::noon(), 1, 2, 3}};
  const CheckResult check{"daemon", CheckState::Missing, "a", "b", "c"};
  std::set<std::string> keys;
  for (const Json& json :
       {json_status(machine), json_inspect(samples::inspection(), conditions), json_metrics(samples::metrics()),
        json_conditions(machine.conditions), json_explain(ConditionType::Overheating, machine.conditions),
        json_history(*s.metric, samples::noon(), samples::noon(), {&s, 1}), json_doctor({&check, 1}),
        json_change({"device.added", "x", "y", Severity::Info}, samples::noon()), json_log(std::vector<klog::Event>(1)),
        json_error({ErrorCode::NotFound, "x", 2}), json_reading({ReadingId::FanRpm, ReadingStatus::Unreadable, 5, 0})})
    collect(json, keys);
  return keys;
}

TEST(JsonManual, DocumentsEveryKeyThatIsEmitted) {
  const std::string text = read("docs/json.md");
  ASSERT_FALSE(text.empty());
  const auto keys = emitted_keys();
  EXPECT_GT(keys.size(), 60U);
  for (const std::string& key : keys) {
    const bool found =
        text.find("`" + key + "`") != std::string::npos || text.find("\"" + key + "\"") != std::string::npos;
    EXPECT_TRUE(found) << key << " is not in docs/json.md";
  }
}

TEST(JsonManual, ListsEveryReadingWithItsUnit) {
  const std::string text = read("docs/json.md");
  for (const ReadingInfo& row : all_readings()) {
    if (row.name.starts_with("ras.")) continue;
    const std::string line = "| `" + std::string(row.name) + "` | " + std::string(to_string(row.unit)) + " | " +
                             (row.keep == Keep::History ? "yes" : "") + " | " + std::string(row.text) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  for (const auto block : kRasBlocks) EXPECT_NE(text.find("`" + std::string(block) + "`"), std::string::npos) << block;
}

TEST(JsonManual, ListsEveryConditionThrottleReasonAndStatus) {
  const std::string text = read("docs/json.md");
  for (const ConditionInfo& row : all_conditions()) {
    const std::string line = "| `" + std::string(row.name) + "` | " + std::string(to_string(row.severity)) + " | " +
                             std::string(row.title) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  for (const ThrottleInfo& row : all_throttle_reasons())
    EXPECT_NE(text.find("| `" + std::string(row.name) + "` | "), std::string::npos) << row.name;
  for (int i = 0; i <= static_cast<int>(ReadingStatus::Implausible); ++i) {
    const auto name = std::string(to_string(static_cast<ReadingStatus>(i)));
    EXPECT_NE(text.find("| `" + name + "` | "), std::string::npos) << name;
  }
}

TEST(JsonManual, ListsEveryExitCode) {
  const std::string text = read("docs/json.md");
  for (const ExitCodeInfo& row : all_exit_codes()) {
    const std::string line = "| " + std::to_string(static_cast<int>(row.code)) + " | " + std::string(row.text) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(Manual, ListsEveryExitCode) {
  const std::string text = read("docs/man/gpuhealthctl.1");
  for (const ExitCodeInfo& row : all_exit_codes()) {
    const std::string lines = ".B " + std::to_string(static_cast<int>(row.code)) + "\n" + std::string(row.text) + "\n";
    EXPECT_NE(text.find(lines), std::string::npos) << lines;
  }
}

}  // namespace
}  // namespace gpuhealth::cli
