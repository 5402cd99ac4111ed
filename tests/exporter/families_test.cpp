// SPDX-License-Identifier: Apache-2.0
// What a scrape shows of a state.
#include "exporter/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <limits>

namespace gpuhealth::exporter {
namespace {

using testing::HasSubstr;
using testing::Not;

dbus::DeviceView card() {
  dbus::DeviceView d;
  d.id = "uid-1";
  d.pci = "0000:03:00.0";
  d.name = "Radeon \"RX\" 7900";
  d.health = "ok";
  d.runtime_status = "active";
  d.sampled = wall_from_microseconds(1'764'515'000'250'000);
  d.readings = {{ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, 45},
                {ReadingId::TemperatureJunction, ReadingStatus::Stale, 0, 99},
                {ReadingId::ClockGfx, ReadingStatus::Valid, 0, 2500},
                {ReadingId::FanRpm, ReadingStatus::Valid, 0, 0},
                {ReadingId::PowerAverage, ReadingStatus::Asleep, 0, 0},
                {ras_reading(0, RasKind::Correctable), ReadingStatus::Valid, 0, 7}};
  return d;
}

State state_with(std::vector<dbus::DeviceView> devices) {
  State s;
  s.snapshot.emplace();
  s.snapshot->devices = std::move(devices);
  s.snapshot->manager.version = "0.1.0";
  s.answered = wall_from_microseconds(1'764'515'001'000'000);
  return s;
}

std::string text_of(const State& state) {
  return prometheus::TextSerializer().Serialize(families(state, {}));
}

TEST(Families, AValidReadingIsASeriesInItsBaseUnit) {
  const auto text = text_of(state_with({card()}));
  EXPECT_THAT(text, HasSubstr("gpuhealth_temperature_edge_celsius{device=\"uid-1\",pci=\"0000:03:00.0\"} 45\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_clock_gfx_hertz{device=\"uid-1\",pci=\"0000:03:00.0\"} 2500000000\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_fan_rpm{device=\"uid-1\",pci=\"0000:03:00.0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("# HELP gpuhealth_temperature_edge_celsius GPU temperature at the edge of the die\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE gpuhealth_temperature_edge_celsius gauge\n"));
}

TEST(Families, WhatIsNotValidHasNoSeriesAndIsCounted) {
  const auto text = text_of(state_with({card()}));
  EXPECT_THAT(text, Not(HasSubstr("temperature_junction")));
  EXPECT_THAT(text, Not(HasSubstr("power_average")));
  EXPECT_THAT(text,
              HasSubstr("gpuhealth_device_readings{device=\"uid-1\",pci=\"0000:03:00.0\",status=\"asleep\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_device_readings{device=\"uid-1\",pci=\"0000:03:00.0\",status=\"valid\"} 4\n"));
}

TEST(Families, RasCountersShareOneFamily) {
  EXPECT_THAT(text_of(state_with({card()})),
              HasSubstr("gpuhealth_ras_errors_total{device=\"uid-1\",pci=\"0000:03:00.0\",block=\"umc\",kind="
                        "\"correctable\"} 7\n"));
}

TEST(Families, LabelsAreEscaped) {
  EXPECT_THAT(text_of(state_with({card()})), HasSubstr("name=\"Radeon \\\"RX\\\" 7900\""));
}

TEST(Families, SeriesVanishWithTheirDevice) {
  auto two = state_with({card(), card()});
  two.snapshot->devices[1].id = "uid-2";
  EXPECT_THAT(text_of(two), HasSubstr("uid-2"));
  two.snapshot->devices.pop_back();
  EXPECT_THAT(text_of(two), Not(HasSubstr("uid-2")));
}

TEST(Families, WithoutAnAnswerOnlyThatIsSaid) {
  State s = state_with({card()});
  s.snapshot.reset();
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("gpuhealth_daemon_up 0\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_exporter_last_answer_timestamp_seconds 1764515001\n"));
  EXPECT_THAT(text, Not(HasSubstr("uid-1")));
}

TEST(Families, ADeviceThatIsListedTwiceIsShownOnce) {
  const auto text = text_of(state_with({card(), card()}));
  const std::string line = "\ngpuhealth_fan_rpm{";
  EXPECT_EQ(text.find(line), text.rfind(line));
}

TEST(Families, NumbersThatAreNoneAreLeftOut) {
  auto d = card();
  d.readings[0].value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(text_of(state_with({d})), Not(HasSubstr("temperature_edge")));
}

TEST(Families, AConditionIsThereWhileItIsOpen) {
  auto s = state_with({card()});
  Condition c;
  c.type = ConditionType::Overheating;
  c.severity = Severity::Critical;
  c.state = ConditionState::Confirmed;
  c.device = "uid-1";
  c.since = wall_from_microseconds(1'764'515'000'000'000);
  s.snapshot->conditions = {c};
  EXPECT_THAT(text_of(s), HasSubstr("gpuhealth_condition{device=\"uid-1\",type=\"overheating\",severity=\"critical\","
                                    "state=\"confirmed\"} 1\n"));
  EXPECT_THAT(text_of(s), HasSubstr("gpuhealth_condition_acknowledged{device=\"uid-1\",type=\"overheating\"} 0\n"));
  s.snapshot->conditions.clear();
  EXPECT_THAT(text_of(s), Not(HasSubstr("gpuhealth_condition")));
}

TEST(Families, HealthHasOneSeriesAState) {
  const auto text = text_of(state_with({card()}));
  EXPECT_THAT(text, HasSubstr("gpuhealth_device_health{device=\"uid-1\",pci=\"0000:03:00.0\",state=\"ok\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_device_health{device=\"uid-1\",pci=\"0000:03:00.0\",state=\"critical\"} 0\n"));
}

TEST(Families, AnOldDaemonHasNoPolicyKernelOrActions) {
  const auto text = text_of(state_with({card()}));
  for (const char* name : {"gpuhealth_policy", "gpuhealth_kernel", "gpuhealth_actions"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST(Families, PolicyKernelAndActionsOfANewOne) {
  auto s = state_with({card()});
  s.snapshot->manager_properties = {{"PolicyMode", std::string("shadow")},
                                    {"SafeMode", std::string("three boots did not end well")},
                                    {"BreakerOpen", true}};
  const dbus::Properties action = {
      {"Device", std::string("uid-1")}, {"Kind", std::string("power-cap")}, {"State", std::string("applied")}};
  s.snapshot->others = {{"/a/1", "org.gpuhealth1.Action", action},
                        {"/a/2", "org.gpuhealth1.Action", action},
                        {"/k",
                         "org.gpuhealth1.Kernel",
                         {{"Running", std::string("7.0.12")},
                          {"State", std::string("qualifying")},
                          {"Advisories", std::vector<std::string>{"a", "b"}}}}};
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("gpuhealth_policy_mode{state=\"shadow\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_policy_mode{state=\"observe\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_policy_safe_mode 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_policy_breaker_open 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_actions{device=\"uid-1\",kind=\"power-cap\",state=\"applied\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_kernel_state{release=\"7.0.12\",state=\"qualifying\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gpuhealth_kernel_advisories 2\n"));
}

TEST(Families, CanariesBelongToTheDeviceAtTheirAddress) {
  auto s = state_with({card()});
  s.canaries.last = {{"0000:03:00.0", "triad", "bandwidth", canary::Status::Ok, 1'764'515'000, 1.25},
                     {"0000:99:00.0", "triad", "bandwidth", canary::Status::Ok, 1'764'515'000, 1.5}};
  const auto text = text_of(s);
  EXPECT_THAT(text, HasSubstr("gpuhealth_canary_slowdown_ratio{device=\"uid-1\",pci=\"0000:03:00.0\",canary=\"triad\","
                              "metric=\"bandwidth\"} 1.25\n"));
  EXPECT_THAT(text, Not(HasSubstr("0000:99:00.0")));
}

}  // namespace
}  // namespace gpuhealth::exporter
