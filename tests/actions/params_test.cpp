// SPDX-License-Identifier: Apache-2.0
#include "actions/params.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuhealth::actions {
namespace {

using testing::HasSubstr;

Result<Params> read(ActionKind kind, std::map<std::string, std::string> params) {
  ActionRequest request;
  request.kind = kind;
  request.params = std::move(params);
  return Params::read(request);
}

TEST(Params, AbsentOnesHaveTheTablesDefault) {
  const auto params = read(ActionKind::PcieSpeed, {});
  ASSERT_TRUE(params);
  EXPECT_EQ(params->number("floor"), 3);
  EXPECT_EQ(params->number("generation"), std::nullopt);
  EXPECT_FALSE(params->flag("with_jobs"));
}

TEST(Params, MistakesNameWhatWouldBeRight) {
  const auto said = [](const Result<Params>& result) { return result ? std::string("taken") : result.error().text; };
  EXPECT_THAT(said(read(ActionKind::PowerCap, {{"wats", "250"}})), HasSubstr("did you mean watts?"));
  EXPECT_THAT(said(read(ActionKind::PowerCap, {{"watts", "many"}})), HasSubstr("watts must be a number"));
  EXPECT_THAT(said(read(ActionKind::PowerCap, {{"above_default", "yes"}})), HasSubstr("true or false"));
  EXPECT_THAT(said(read(ActionKind::RunHook, {})), HasSubstr("run-hook needs program"));
  EXPECT_THAT(said(read(ActionKind::Reboot, {{"window", "2-5"}})), HasSubstr("02:00-05:00"));
  EXPECT_THAT(said(read(ActionKind::RunHook, {{"program", "a b"}})), HasSubstr("one word"));
  EXPECT_THAT(said(read(ActionKind::PowerCap, {{"watts", "nan"}})), HasSubstr("a number"));
  EXPECT_THAT(said(read(ActionKind::Notify, {{"urgency", "high"}})), HasSubstr("low, normal or critical"));
}

// Each of these passes `policy check`, which uses the same readers.
TEST(Params, TimesSizesAndWindowsAreReadAsPoliciesWriteThem) {
  using namespace std::chrono_literals;
  for (const auto& [text, time] : std::map<std::string, std::chrono::milliseconds>{
           {"30s", 30s}, {"5min", 5min}, {"1.5m", 90s}, {"2w", 336h}, {"250ms", 250ms}})
    EXPECT_EQ(read(ActionKind::RunHook, {{"program", "p"}, {"deadline", text}})->span("deadline"), time) << text;
  for (const auto& [text, bytes] : std::map<std::string, std::uint64_t>{
           {"64MiB", 67'108'864U}, {"0.5GiB", 536'870'912U}, {"1TiB", 1'099'511'627'776U}})
    EXPECT_EQ(read(ActionKind::CollectEvidence, {{"limit", text}})->bytes("limit"), bytes) << text;
  for (const char* text : {"02:00-05:00", "Mon-Fri 22:00-24:00", "Sat,Sun 00:00-06:00"})
    EXPECT_TRUE(read(ActionKind::Reboot, {{"window", text}})->window("window")) << text;
  EXPECT_FALSE(read(ActionKind::Reboot, {})->window("window"));
  for (const char* bad : {"s", "30", "-1s", "99999999999999999d"})
    EXPECT_FALSE(read(ActionKind::RunHook, {{"program", "p"}, {"deadline", bad}})) << bad;
  for (const char* bad : {"MiB", "-1", "1TB", "100"})
    EXPECT_FALSE(read(ActionKind::CollectEvidence, {{"limit", bad}})) << bad;
  for (const char* bad : {"02:00", "2:00-5:00", "25:00-26:00", "02:60-05:00"})
    EXPECT_FALSE(read(ActionKind::Reboot, {{"window", bad}})) << bad;
}

}  // namespace
}  // namespace gpuhealth::actions
