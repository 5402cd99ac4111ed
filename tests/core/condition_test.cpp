// SPDX-License-Identifier: Apache-2.0
#include "core/condition.hpp"

#include <gtest/gtest.h>

namespace gpuhealth {
namespace {

TEST(ConditionTable, EveryRowIsFoundByItsNameAndSaysWhatToDo) {
  for (const auto& row : all_conditions()) {
    EXPECT_EQ(condition_type_from(row.name), row.type);
    EXPECT_EQ(&info(row.type), &row);
    EXPECT_FALSE(row.title.empty() || row.meaning.empty() || row.advice.empty()) << row.name;
    EXPECT_EQ(row.advice.back(), '.') << row.name;
  }
  EXPECT_FALSE(condition_type_from("hot"));
}

TEST(ConditionId, NamesTypeDeviceAndSecond) {
  EXPECT_EQ(condition_id(ConditionType::PcieDowngraded, "uid-49afc8b43a8a6d30",
                         wall_from_microseconds(1'764'515'000'250'000)),
            "pcie-downgraded-uid-49afc8b43a8a6d30-1764515000");
}

TEST(ConditionNames, RoundTrip) {
  EXPECT_EQ(to_string(Severity::Critical), "critical");
  EXPECT_EQ(severity_from("warning"), Severity::Warning);
  EXPECT_EQ(condition_state_from("confirmed"), ConditionState::Confirmed);
  EXPECT_FALSE(condition_state_from("open"));
}

}  // namespace
}  // namespace gpuhealth
