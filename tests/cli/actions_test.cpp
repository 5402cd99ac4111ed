// SPDX-License-Identifier: Apache-2.0
#include "cli/actions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "actions/request.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::cli {
namespace {

using testing::HasSubstr;

LedgerEntry capped() {
  LedgerEntry out;
  out.id = "000003-power-cap";
  out.owner = "actions";
  out.action = "power-cap";
  out.state = "applied";
  out.started = "2026-11-30T14:02:07Z";
  out.target = "0000:03:00.0";
  out.device = "uid-49afc8b43a8a6d30";
  out.before = "303 W";
  out.wanted = out.after = "280 W";
  out.confirm_by = "2026-11-30T14:17:07Z";
  out.rule = "cool-it";
  out.reason = "junction at \x1b[31m110 C";
  out.steps = {{"value", "/sys/x/power1_cap", 0, 0, "280000000"}};
  out.back = {{"value", "/sys/x/power1_cap", 0, 0, "303000000"}};
  out.prior["/run/gpuhealth/drain"] = {};
  return out;
}

void collect(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect(value, keys);
  }
}

TEST(ActionsJson, EveryKeyIsInTheManual) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/json.md");
  std::stringstream text;
  text << file.rdbuf();
  ActionsView view;
  view.entries = {capped()};
  std::set<std::string> keys;
  collect(json_actions(view), keys);
  collect(actions::outcome_json({}), keys);
  EXPECT_GT(keys.size(), 30U);
  for (const std::string& key : keys) {
    const bool found = text.str().find("\"" + key + "\"") != std::string::npos ||
                       text.str().find("`" + key + "`") != std::string::npos;
    EXPECT_TRUE(found) << key;
  }
}

TEST(ActionsPage, SaysWhatWhyAndTheWayBack) {
  const Terminal plain;
  const std::string one = render(render_action(capped(), plain), plain);
  EXPECT_THAT(one, HasSubstr("change: 303 W -> 280 W"));
  EXPECT_THAT(one, HasSubstr("way back: write 303000000 to /sys/x/power1_cap"));
  EXPECT_THAT(one, HasSubstr("way back: remove /run/gpuhealth/drain"));
  EXPECT_THAT(one, HasSubstr("junction at ?[31m110 C"));
  ActionsView view;
  view.entries = {capped()};
  view.safe_mode = {"/etc/gpuhealthd/observe is there"};
  const std::string all = render(render_actions(view, plain), plain);
  EXPECT_THAT(all, HasSubstr("Safe mode, nothing is changed: /etc/gpuhealthd/observe is there"));
  EXPECT_THAT(all, HasSubstr("000003-power-cap"));
  EXPECT_THAT(render(render_actions({}, plain), plain), HasSubstr("Nothing was changed yet."));
}

TEST(ActionsPage, SaysHowLongAnActionMayStay) {
  actions::Outcome outcome;
  outcome.state = "applied";
  outcome.ledger = "000003-power-cap";
  outcome.confirm_by = "2026-11-30T14:17:07Z";
  outcome.text = "power-cap: 303 W -> 280 W";
  const Terminal plain;
  EXPECT_THAT(render(render_action_outcome(actions::outcome_json(outcome), plain), plain),
              HasSubstr("After 2026-11-30T14:17:07Z the next action takes it back, unless it is found good: "
                        "gpuhealthctl actions confirm 000003-power-cap"));
}

}  // namespace
}  // namespace gpuhealth::cli
