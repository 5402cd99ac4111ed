// SPDX-License-Identifier: Apache-2.0
// docs/kernel-log.md is the table of patterns, and the table holds what it promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "klog_support.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::klog {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(KlogDocs, EveryTypeIsDescribed) {
  const auto text = read("docs/kernel-log.md");
  for (const auto& row : all_types()) {
    const std::string line = "| `" + std::string(row.name) + "` | " + std::string(to_string(row.severity)) + " | " +
                             std::string(row.meaning) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(KlogDocs, EveryWordingIsListedWithItsSource) {
  const auto text = read("docs/kernel-log.md");
  for (const auto& row : all_patterns()) {
    const std::string type = row.weight == Weight::Quiet ? "nothing" : "`" + std::string(info(row.type).name) + "`";
    std::string pattern(row.pattern);
    for (auto at = pattern.find('|'); at != std::string::npos; at = pattern.find('|', at + 2)) pattern.insert(at, "\\");
    EXPECT_NE(text.find("| `" + pattern + "` | " + type + " |"), std::string::npos) << row.pattern;
    EXPECT_NE(text.find(std::string(row.source)), std::string::npos) << row.source;
  }
}

TEST(KlogDocs, EveryXidIsListed) {
  const auto text = read("docs/kernel-log.md");
  for (const auto& row : all_xids()) {
    const std::string line = "| " + std::to_string(row.number) + " | " + std::string(to_string(row.severity)) + " | " +
                             std::string(row.text) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(KlogTable, EveryRowNamesItsSource) {
  for (const auto& row : all_patterns()) EXPECT_GT(row.source.size(), 5U) << row.pattern;
}

TEST(KlogTable, NoWordingStandsTwice) {
  std::set<std::pair<std::string_view, int>> seen;
  for (const auto& row : all_patterns()) EXPECT_TRUE(seen.insert({row.pattern, row.from}).second) << row.pattern;
}

TEST(KlogTable, XidsAreSortedAndOnce) {
  const auto xids = all_xids();
  EXPECT_TRUE(std::ranges::is_sorted(xids, std::ranges::less_equal{}, &XidInfo::number) &&
              std::ranges::adjacent_find(xids, {}, &XidInfo::number) == xids.end());
}

TEST(KlogTable, PatternsFitAsTheyAreDescribed) {
  Match match;
  EXPECT_TRUE(fits("ring {} timeout", "ring gfx_0.0.0 timeout, signaled", match));
  EXPECT_EQ(match.subject, "gfx_0.0.0");
  EXPECT_TRUE(fits("* deferred hardware errors", "socket: 0 3 Deferred Hardware errors", match));
  EXPECT_FALSE(fits("* correctable hardware errors", "1 uncorrectable hardware errors", match));
  EXPECT_FALSE(fits("GPU reset", "the GPU reset", match));
  EXPECT_TRUE(fits("probe of {pci} failed", "probe of 0000:05:00.0 failed with", match));
  EXPECT_EQ(to_string(match.device.value()), "0000:05:00.0");
  EXPECT_FALSE(fits("probe of {pci} failed", "probe of 05:00.0 failed with", match));
}

}  // namespace
}  // namespace gpuhealth::klog
