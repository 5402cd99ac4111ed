// SPDX-License-Identifier: Apache-2.0
// The plug-in's line, data and exit codes, as the Monitoring Plugins Development Guidelines have them.
#include "cli/plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Machine healthy() {
  Machine m;
  m.devices = {samples::radeon()};
  m.now = samples::noon();
  return m;
}

Condition condition(Severity severity, const std::string& detail = "") {
  Condition c;
  c.id = "c" + detail;
  c.type = ConditionType::Overheating;
  c.severity = severity;
  c.state = ConditionState::Confirmed;
  c.device = samples::radeon().id;
  c.device_label = "Radeon";
  c.detail = detail;
  return c;
}

TEST(Plugin, AHealthyMachineIsOkWithData) {
  const auto result = plugin_result(healthy(), "");
  EXPECT_EQ(plugin_code(result.state, PluginForm::Nagios), 0);
  const auto text = plugin_text(result, PluginForm::Nagios);
  EXPECT_THAT(text, StartsWith("GPU OK - the GPU is healthy | '0000:03:00.0 temperature.edge'=45 "));
  EXPECT_THAT(text, HasSubstr("'0000:03:00.0 power.average'=287.4"));
  EXPECT_THAT(text, HasSubstr("'0000:03:00.0 utilization.gfx'=98%"));
  EXPECT_THAT(text, HasSubstr("'0000:03:00.0 vram.used'=1288490188B;;;0;25753026560"));
}

TEST(Plugin, TheCardsOwnLimitIsTheCriticalThreshold) {
  auto m = healthy();
  m.devices[0].readings.push_back(samples::valid(ReadingId::TemperatureEdgeCritical, 100));
  EXPECT_THAT(plugin_text(plugin_result(m, ""), PluginForm::Nagios), HasSubstr("temperature.edge'=45;;100"));
}

TEST(Plugin, TheWorstConditionDecidesAndComesFirst) {
  auto m = healthy();
  m.conditions = {condition(Severity::Warning, "w"), condition(Severity::Critical, "c")};
  const auto result = plugin_result(m, "");
  EXPECT_EQ(plugin_code(result.state, PluginForm::Nagios), 2);
  EXPECT_THAT(plugin_text(result, PluginForm::Nagios),
              StartsWith("GPU CRITICAL - GPU is overheating: Radeon: c (and 1 more) | "));
  m.conditions.pop_back();
  EXPECT_EQ(plugin_code(plugin_result(m, "").state, PluginForm::Nagios), 1);
}

TEST(Plugin, WhatSomebodyKnowsIsNoAlarm) {
  auto m = healthy();
  m.conditions = {condition(Severity::Critical)};
  m.conditions[0].acknowledged = true;
  EXPECT_EQ(plugin_result(m, "").state, PluginState::Ok);
}

TEST(Plugin, OneDeviceIsAskedAlone) {
  auto m = healthy();
  m.conditions = {condition(Severity::Critical)};
  m.devices.push_back(samples::sleeping());
  EXPECT_EQ(plugin_result(m, m.devices[1].id).state, PluginState::Ok);
  EXPECT_EQ(plugin_result(m, m.devices[0].id).state, PluginState::Critical);
}

TEST(Plugin, ASilentGpuOrNoneIsUnknown) {
  auto m = healthy();
  m.devices[0].health = "unknown";
  EXPECT_EQ(plugin_result(m, "").state, PluginState::Unknown);
  EXPECT_EQ(plugin_result(Machine{}, "").state, PluginState::Unknown);
}

TEST(Plugin, ForeignTextEndsNeitherLineNorText) {
  auto m = healthy();
  m.conditions = {condition(Severity::Critical, "a|b\nc'd")};
  const auto text = plugin_text(plugin_result(m, ""), PluginForm::Nagios);
  EXPECT_THAT(text, StartsWith("GPU CRITICAL - GPU is overheating: Radeon: a/b c d | "));
}

TEST(Plugin, NodeProblemDetectorGetsItsOwnCodesAndEightyCharacters) {
  auto m = healthy();
  m.conditions = {condition(Severity::Warning, std::string(200, 'x'))};
  const auto result = plugin_result(m, "");
  EXPECT_EQ(plugin_code(result.state, PluginForm::Npd), 1);
  EXPECT_LE(plugin_text(result, PluginForm::Npd).size(), 81U);
  EXPECT_THAT(plugin_text(result, PluginForm::Npd), Not(HasSubstr("|")));
  EXPECT_EQ(plugin_code(PluginState::Ok, PluginForm::Npd), 0);
  EXPECT_EQ(plugin_code(PluginState::Unknown, PluginForm::Npd), 2);
}

}  // namespace
}  // namespace gpuhealth::cli
