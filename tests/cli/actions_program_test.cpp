// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl actions on a synthetic machine, with the real gpuhealth-act.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "sim/tree.hpp"
#include "tests/paths.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace gpuhealth;
using testing::HasSubstr;

class ActionsProgram : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<sim::Card> cards = {sim::idle_card(sim::rx7900xtx(), 0)};
    ASSERT_TRUE(sim::write_machine(dir_.path(), cards));
    for (const char* folder : {"var/lib", "etc/gpuhealthd", "run"})
      std::filesystem::create_directories(dir_.path() / folder);
  }
  [[nodiscard]] test::Outcome run(const std::string& words) const {
    return test::run_command(GPUHEALTH_BIN_DIR "/gpuhealthctl actions " + words + " --root " + dir_.string() + " 2>&1");
  }
  test::TempDir dir_;
};

TEST_F(ActionsProgram, RunsShowsConfirmsAndReverts) {
  EXPECT_THAT(run("list").out, HasSubstr("Nothing was changed yet."));
  const auto dry = run("run power-cap watts=280 --device 03:00.0 --dry-run");
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.out, HasSubstr("303 W -> 280 W; nothing was changed."));
  EXPECT_THAT(run("list").out, HasSubstr("Nothing was changed yet."));
  const auto done = run("run power-cap watts=280 --device 03:00.0");
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.out, HasSubstr("power-cap: 303 W -> 280 W"));
  EXPECT_THAT(run("show 1").out, HasSubstr("000001-power-cap: applied"));
  EXPECT_EQ(nlohmann::json::parse(run("list --open --json").out)["actions"][0]["in_force"], true);
  EXPECT_EQ(run("confirm 1").code, 0);
  EXPECT_EQ(nlohmann::json::parse(run("revert 1 --json").out)["state"], "reverted");
  EXPECT_TRUE(nlohmann::json::parse(run("list --open --json").out)["actions"].empty());
}

TEST_F(ActionsProgram, MistakesHaveTheirCodesAndHints) {
  const auto near = run("run power-cat");
  EXPECT_EQ(near.code, 5);
  EXPECT_THAT(near.out, HasSubstr("did you mean power-cap?"));
  EXPECT_EQ(run("show 7").code, 5);
  EXPECT_EQ(run("run power-cap watts --device 03:00.0").code, 3);
  EXPECT_EQ(run("frobnicate").code, 2);
  std::ofstream(dir_.path() / "etc/gpuhealthd/observe") << "";
  const auto refused = run("run power-cap watts=280 --device 03:00.0");
  EXPECT_EQ(refused.code, 6);
  EXPECT_THAT(refused.out, HasSubstr("safe mode"));
  EXPECT_THAT(run("list").out, HasSubstr("Safe mode, nothing is changed"));
}

}  // namespace
