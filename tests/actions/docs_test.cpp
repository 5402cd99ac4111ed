// SPDX-License-Identifier: Apache-2.0
// docs/actions.md against the tables.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "actions/actuator.hpp"
#include "actions/interlocks.hpp"
#include "actions/state.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::actions {
namespace {

std::string manual() {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/actions.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string_view risk_name(ActionRisk risk) {
  switch (risk) {
    case ActionRisk::None:
      return "none";
    case ActionRisk::Reversible:
      return "reversible";
    case ActionRisk::Interrupts:
      return "interrupts";
    case ActionRisk::Unknown:
      return "unknown";
  }
  return "";
}

TEST(ActionsManual, HasEveryActionWithItsRiskItsParametersAndAWayBack) {
  const std::string text = manual();
  for (const ActionInfo& row : all_actions()) {
    const std::string heading = "\n### " + std::string(row.name) + " (" + std::string(risk_name(row.risk)) + ")\n";
    const auto at = text.find(heading);
    ASSERT_NE(at, std::string::npos) << heading;
    const std::string part = text.substr(at, text.find("\n#", at + 4) - at);
    EXPECT_NE(part.find("By hand: "), std::string::npos) << row.name;
    for (const ActionParam& param : params_of(row.kind))
      EXPECT_NE(part.find("`" + std::string(param.name) + "`"), std::string::npos) << row.name << " " << param.name;
  }
}

TEST(ActionsManual, HasEveryStateAndStep) {
  const std::string text = manual();
  for (const ActionStateInfo& row : all_action_states()) {
    const std::string line =
        "| `" + std::string(row.name) + "` | " + (row.open ? "yes" : "") + " | " + std::string(row.meaning) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
#define STEP(id, name, does) EXPECT_NE(text.find("| `" name "` | " does " |"), std::string::npos) << name;
#include "actions/steps.def"
#undef STEP
}

TEST(ActionsManual, NamesEveryWayIntoSafeMode) {
  const std::string text = manual();
  for (const std::string_view word : {kObserveWord, kObserveFile})
    EXPECT_NE(text.find("`" + std::string(word) + "`"), std::string::npos) << word;
  EXPECT_NE(text.find("acted " + std::to_string(kBreakerMost) + " times within an hour"), std::string::npos);
}

TEST(Actuators, AreThereForEveryActionButTheDaemonsOwn) {
  for (const ActionInfo& row : all_actions()) {
    const Actuator* actuator = actuator_for(row.kind);
    EXPECT_EQ(actuator == nullptr, row.kind == ActionKind::RunCanary) << row.name;
    if (actuator == nullptr) continue;
    EXPECT_NE(actuator->plan == nullptr, actuator->perform == nullptr) << row.name;
    EXPECT_EQ(actuator->plan == nullptr, actuator->observe == nullptr) << row.name;
  }
}

}  // namespace
}  // namespace gpuhealth::actions
