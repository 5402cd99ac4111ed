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

TEST(Params, TimesSizesAndWindows) {
  using namespace std::chrono_literals;
  EXPECT_EQ(span_from("30s"), 30s);
  EXPECT_EQ(span_from("2h"), 2h);
  EXPECT_EQ(span_from("250ms"), 250ms);
  for (const char* bad : {"", "s", "30", "-1s", "1.5h", "99999999999999999d"})
    EXPECT_EQ(span_from(bad), std::nullopt) << bad;
  EXPECT_EQ(bytes_from("64MiB"), 67'108'864U);
  EXPECT_EQ(bytes_from("100"), 100U);
  for (const char* bad : {"", "MiB", "-1", "1TB", "9999999999999GiB"}) EXPECT_EQ(bytes_from(bad), std::nullopt) << bad;
  EXPECT_EQ(within_window("02:00-05:00", 120), true);
  EXPECT_EQ(within_window("02:00-05:00", 300), false);
  EXPECT_EQ(within_window("22:00-04:00", 23 * 60), true);
  EXPECT_EQ(within_window("22:00-04:00", 12 * 60), false);
  for (const char* bad : {"", "02:00", "2:00-5:00", "25:00-26:00", "02:60-05:00"})
    EXPECT_EQ(within_window(bad, 0), std::nullopt) << bad;
}

}  // namespace
}  // namespace gpuhealth::actions
