// SPDX-License-Identifier: Apache-2.0
// docs/conditions.md says what the tables say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/condition.hpp"
#include "health/thresholds.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::health {
namespace {

std::string page() {
  std::ifstream in(GPUHEALTH_SOURCE_DIR "/docs/conditions.md");
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ConditionsPage, EveryConditionHasASectionWithItsMeaningAndAdvice) {
  const auto text = page();
  for (const auto& row : all_conditions()) {
    EXPECT_TRUE(contains(text, fmt::format("\n### {}\n", row.name))) << row.name;
    EXPECT_TRUE(contains(text, std::string(row.meaning))) << row.meaning;
    EXPECT_TRUE(contains(text, std::string(row.advice))) << row.advice;
  }
}

TEST(ConditionsPage, EveryThresholdHasARowWithItsDefaultRangeAndSource) {
  const auto text = page();
  for (const auto& row : all_thresholds()) {
    const auto line = fmt::format("| `{}` | {}{}{} | {} to {} | {} | {} |", row.key, row.default_value,
                                  row.unit.empty() ? "" : " ", row.unit, row.lowest, row.highest, row.text, row.source);
    EXPECT_TRUE(contains(text, line)) << line;
  }
}

TEST(ConditionsPage, NamesNoThresholdThatDoesNotExist) {
  std::istringstream lines(page());
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const auto key = line.substr(3, line.find('`', 3) - 3);
    EXPECT_NE(find_threshold(key), nullptr) << key;
  }
  EXPECT_EQ(rows, static_cast<int>(all_thresholds().size()));
}

}  // namespace
}  // namespace gpuhealth::health
