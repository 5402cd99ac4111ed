// SPDX-License-Identifier: Apache-2.0
#include "health/thresholds.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace gpuhealth::health {
namespace {

TEST(Thresholds, EveryDefaultLiesInItsRangeAndHasASource) {
  const Thresholds defaults;
  std::set<std::string_view> keys;
  for (const auto& row : all_thresholds()) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_EQ(defaults.*row.field, row.default_value) << row.key;
    EXPECT_GE(row.default_value, row.lowest) << row.key;
    EXPECT_LE(row.default_value, row.highest) << row.key;
    EXPECT_FALSE(row.text.empty() || row.source.empty()) << row.key;
    EXPECT_NE(row.key.find('.'), std::string_view::npos) << row.key;
  }
}

TEST(Thresholds, AValueIsSetByItsKey) {
  Thresholds thresholds;
  ASSERT_TRUE(set_threshold(thresholds, "overheating.margin", 4));
  EXPECT_EQ(thresholds.overheating_margin_c, 4);
}

TEST(Thresholds, ATypingErrorIsAnsweredWithTheNearestKey) {
  Thresholds thresholds;
  const auto result = set_threshold(thresholds, "overheating.margn", 4);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::NotFound);
  EXPECT_EQ(result.error().text, "no threshold is named 'overheating.margn'; the nearest is 'overheating.margin'");
  EXPECT_FALSE(set_threshold(thresholds, std::string(1'000'000, 'x'), 1));
  EXPECT_FALSE(set_threshold(thresholds, "", 1));
}

TEST(Thresholds, AValueOutsideItsRangeIsRefusedAndNamesTheRange) {
  Thresholds thresholds;
  const auto result =
      set_threshold(thresholds, "pcie-errors.replays", 0);  // DCGM 285: a limit of zero alarms for nothing
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(result.error().text, "pcie-errors.replays must be 10 to 1000000 1/h, not 0");
  EXPECT_EQ(thresholds.pcie_errors_replays, 480);
  EXPECT_FALSE(set_threshold(thresholds, "busy.percent", 101));
  EXPECT_FALSE(set_threshold(thresholds, "busy.percent", std::nan("")));
  EXPECT_FALSE(set_threshold(thresholds, "busy.percent", HUGE_VAL));
}

}  // namespace
}  // namespace gpuhealth::health
