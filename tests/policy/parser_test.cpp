// SPDX-License-Identifier: Apache-2.0
// What a sound policy becomes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policy/keys.hpp"
#include "policy/policy.hpp"
#include "policy/schema.hpp"

namespace gpuhealth::policy {
namespace {

using namespace std::chrono_literals;

Policy read(const std::string& text) {
  auto parsed = parse_policy("p.yaml", text);
  for (const auto& m : parsed.mistakes) ADD_FAILURE() << yaml::line_of("p.yaml", m);
  return parsed.policy.value_or(Policy{});
}

TEST(PolicyParser, ReadsEverySection) {
  const auto p = read(R"(apiVersion: gpuhealth/v1
kind: Policy
metadata: {name: lab, serial: 7, expires: 2027-03-31, description: Ours.}
targets: {host: lab-*, labels: {role: train}, vendor: [amd, intel], gfx: gfx11*, sku: ["*XTX"], vram: {at_least: 16GiB}, distribution: debian 12, kernel: 6.12.*}
mode: shadow
limits: {actions: {count: 5, within: 24h}, breaker: {count: 3, within: 10m}}
rules:
  - name: hot
    mode: enforce
    when:
      all:
        - reading: {name: temperature.junction, above: 95 C, clear: 85 C}
        - not: {condition: {type: clocks-stuck-low, severity: warning, cause: thermal}}
        - any: [{canary: {name: any, finding: stall, slower_than: 1.5x}}, {event: {type: gpu.reset.failed, count: 3, within: 1h}}, {advisory: any}]
    for: 90s
    clear_for: 5m
    cooldown: 1h
    budget: {count: 2, within: 24h}
    unless: {busy: true, battery: true, window: [08:00-18:00]}
    do:
      - power-cap: {watts: 250 W}
      - notify: {via: [journal, desktop], urgency: critical, text: "{device}"}
      - drain
    revert_when: {reading: {name: temperature.junction, below: 70 C}, for: 10m}
)");
  EXPECT_EQ(p.name, "lab");
  EXPECT_EQ(p.serial, 7);
  EXPECT_EQ(text_of(*p.expires), "2027-04-01T00:00:00Z");
  EXPECT_EQ(p.mode, Mode::Shadow);
  EXPECT_EQ(p.targets.vendor, (std::vector<std::string>{"amd", "intel"}));
  EXPECT_EQ(p.targets.vram_at_least, 17179869184.0);
  EXPECT_EQ(p.actions, (Rate{5, 24h}));
  ASSERT_EQ(p.rules.size(), 1U);
  const Rule& r = p.rules[0];
  EXPECT_EQ(r.line, 8);
  EXPECT_EQ(r.mode, Mode::Enforce);
  EXPECT_EQ(r.hold, 90s);
  EXPECT_EQ(r.clear_for, 5min);
  EXPECT_EQ(r.cooldown, 1h);
  EXPECT_EQ(r.budget, (Rate{2, 24h}));
  EXPECT_TRUE(r.unless.busy && r.unless.battery);
  EXPECT_EQ(r.unless.windows.size(), 1U);
  EXPECT_EQ(r.revert_hold, 10min);
  ASSERT_EQ(r.actions.size(), 3U);
  EXPECT_EQ(r.actions[0].params, (std::map<std::string, std::string>{{"watts", "250"}}));
  EXPECT_EQ(r.actions[1].params.at("via"), "journal,desktop");
  const auto& all = std::get<Group>(r.when.what);
  ASSERT_EQ(all.parts.size(), 3U);
  EXPECT_EQ(std::get<ReadingMatch>(all.parts[0].what).clear, 85.0);
  EXPECT_EQ(std::get<Group>(all.parts[2].what).parts.size(), 3U);
}

TEST(PolicyParser, WhatIsNotSaidHasItsDefault) {
  const auto p = read(
      "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\nrules: [{name: r, when: {condition: overheating}, "
      "do: [notify]}]\n");
  EXPECT_EQ(p.mode, Mode::Observe);
  EXPECT_EQ(p.rules[0].cooldown, 10min);
  EXPECT_EQ(p.rules[0].hold, 0s);
  EXPECT_FALSE(p.rules[0].mode);
}

TEST(PolicyParser, AnchorsMayBeUsed) {
  const auto p = read(
      "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\nrules:\n"
      "  - {name: a, when: {condition: overheating}, do: &tell [notify]}\n  - {name: b, when: {condition: smu-dead}, "
      "do: *tell}\n");
  ASSERT_EQ(p.rules.size(), 2U);
  EXPECT_EQ(p.rules[1].actions[0].kind, ActionKind::Notify);
}

TEST(PolicyParser, EveryActionOfTheTableCanBeAskedFor) {
  const std::map<std::string, std::string> required = {
      {"program", "x"}, {"level", "low"}, {"profile", "COMPUTE"}, {"mhz", "1500"}, {"release", "newest"}};
  for (const auto& action : all_actions()) {
    std::string params;
    for (const auto& param : params_of(action.kind))
      if (param.required) params += std::string(param.name) + ": " + required.at(std::string(param.name)) + ", ";
    if (action.kind == ActionKind::PowerCap) params += "percent: 80";
    std::string more;
    if (action.kind == ActionKind::Reboot) params += "window: 02:00-05:00", more = ", budget: {count: 1, within: 7d}";
    const auto p = read(
        "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\nrules: [{name: r, when: {condition: "
        "overheating}, do: [" +
        (params.empty() ? std::string(action.name) : "{" + std::string(action.name) + ": {" + params + "}}") + "]" +
        more + "}]\n");
    ASSERT_EQ(p.rules.size(), 1U) << action.name;
    EXPECT_EQ(p.rules[0].actions[0].kind, action.kind);
  }
}

TEST(PolicySchema, HasEveryKeyAndEveryAction) {
  const auto schema = nlohmann::json::parse(json_schema());
  EXPECT_EQ(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  const auto text = schema.dump();
  for (const auto& key : all_keys())
    EXPECT_NE(text.find("\"" + std::string(key.key) + "\":{"), std::string::npos) << key.key;
  for (const auto& action : all_actions())
    EXPECT_NE(text.find("\"" + std::string(action.name) + "\":{"), std::string::npos) << action.name;
  EXPECT_EQ(schema.at("required"), nlohmann::json({"apiVersion", "kind", "metadata", "rules"}));
  EXPECT_EQ(schema.at("$defs").at("rule").at("properties").at("when").at("$ref"), "#/$defs/when");
}

TEST(PolicyKeys, RowsOfASectionStandTogether) {
  std::size_t rows = 0;
  for (int i = 1; i < static_cast<int>(SectionId::Count); ++i) rows += keys_of(static_cast<SectionId>(i)).size();
  EXPECT_EQ(rows, all_keys().size());
}

}  // namespace
}  // namespace gpuhealth::policy
