// SPDX-License-Identifier: Apache-2.0
#include "core/action.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gpuhealth {
namespace {

TEST(Actions, AreFoundByTheirName) {
  EXPECT_EQ(action_kind_from("power-cap"), ActionKind::PowerCap);
  EXPECT_EQ(action_kind_from("reboot"), ActionKind::Reboot);
  EXPECT_EQ(action_kind_from("Reboot"), std::nullopt);
  EXPECT_EQ(to_string(ActionKind::KernelPin), "kernel-pin");
}

TEST(Actions, NamesAndTheirParametersAreUnique) {
  std::set<std::string_view> names;
  for (const auto& action : all_actions()) {
    EXPECT_TRUE(names.insert(action.name).second) << action.name;
    std::set<std::string_view> params;
    for (const auto& param : params_of(action.kind)) EXPECT_TRUE(params.insert(param.name).second) << param.name;
  }
}

TEST(Actions, ParametersBelongToTheirAction) {
  const auto params = params_of(ActionKind::GpuReset);
  ASSERT_EQ(params.size(), 2U);
  EXPECT_EQ(params[0].name, "with_jobs");
  EXPECT_EQ(params[1].name, "with_display");
  EXPECT_TRUE(params_of(ActionKind::KernelHold).empty());
}

TEST(Actions, WhatCannotBeUndoneInterrupts) {
  for (const auto& action : all_actions())
    EXPECT_EQ(action.risk == ActionRisk::Interrupts, action.undo == "cannot be undone") << action.name;
}

}  // namespace
}  // namespace gpuhealth
