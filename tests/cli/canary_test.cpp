// SPDX-License-Identifier: Apache-2.0
// Files of result lines, as gpuhealthctl replay and canary compare read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cli/json_canary.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::cli {
namespace {

using canary::Gate;
using canary::stats::FindingKind;
using canary::stats::Level;

std::string triad(double time, double value, const std::string& kernel) {
  return R"({"canary":"triad","value":)" + std::to_string(value) + R"(,"time":)" + std::to_string(time) +
         R"(,"epoch":")" + kernel + R"(","software":{"kernel":")" + kernel + R"("},"device":"0000:03:00.0"})" + "\n";
}

std::string stall(double time, double ms, const std::string& kernel) {
  std::string one =
      R"({"ms":)" + std::to_string(ms) + R"(,"control_ms":2,"system_ms":)" + std::to_string(ms * 0.98) + "}";
  return R"({"canary":"h2d_file_rw","value":)" + std::to_string(ms) + R"(,"time":)" + std::to_string(time) +
         R"(,"epoch":")" + kernel + R"(","software":{"kernel":")" + kernel +
         R"("},"device":"0000:03:00.0","mappings":[)" + one + "," + one + "," + one + "]}\n";
}

std::string regression() {
  std::string text;
  double t = 1.79e9;
  for (int i = 0; i < 60; ++i) text += triad(t += 300, 800 + i % 5, "6.12.1");
  for (int i = 0; i < 20; ++i) text += triad(t += 300, 640 + i % 5, "6.12.2");
  return text;
}

TEST(Replay, FindsTheStallItsCauseAndTheKernelThatChanged) {
  const auto text = stall(1000, 12, "7.0.11") + stall(2000, 2010, "7.0.12") + stall(2016, 2010, "7.0.12");
  const auto result = replay(parse_results(text, Gate::Strong));
  ASSERT_EQ(result.findings.size(), 2U);
  EXPECT_EQ(result.findings[0].finding.level, Level::Suspect);
  EXPECT_EQ(result.findings[1].finding.level, Level::Confirmed);
  EXPECT_EQ(result.findings[1].cause.text, "software regression: host-memory mapping path");
  EXPECT_TRUE(anything_confirmed(result));
  const auto json = json_replay(result);
  EXPECT_EQ(json["open"][0]["kind"], "stall");
  EXPECT_EQ(json["open"][0]["changed"][0]["field"], "kernel");
  EXPECT_EQ(json["open"][0]["changed"][0]["change"], "7.0.11 -> 7.0.12");
}

RunRow row(const std::string& canary, const std::string& verdict, bool with_control = false) {
  RunRow out;
  out.measurement.canary = canary;
  if (with_control) out.measurement.mappings = {{12, 2, 11, 1}};
  out.verdict = verdict;
  return out;
}

TEST(Bisect, WithoutABaselineNothingIsGood) {
  EXPECT_EQ(bisect_code({row("triad", "no baseline")}, "ok"), 125);
  EXPECT_EQ(bisect_code({row("checksum", "ok"), row("triad", "no baseline")}, "ok"), 125);
  EXPECT_EQ(bisect_code({row("triad", "ok")}, "ok"), 0);
  EXPECT_EQ(bisect_code({row("triad", "slower")}, "slower"), 1);
  EXPECT_EQ(bisect_code({row("triad", "busy")}, "busy"), 125);
}

TEST(Bisect, TheStallHasItsControlAndNeedsNoBaseline) {
  EXPECT_EQ(bisect_code({row("userptr_cow", "no baseline", true), row("userptr_cow", "no baseline")}, "ok"), 0);
  EXPECT_EQ(bisect_code({row("userptr_cow", "stall", true)}, "stall"), 1);
}

TEST(Replay, AHealthyRatioAndAFixedKernelAreNothing) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += stall(1000 + 300 * i, 16, "7.0.11");
  for (int i = 0; i < 20; ++i) text += stall(9000 + 300 * i, 12, "7.0.13");
  const auto result = replay(parse_results(text, Gate::Strong));
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.judged, 40U);
}

TEST(Replay, FindsARegressionAndSuspectsItOnlyBehindAWeakGate) {
  const auto strong = replay(parse_results(regression(), Gate::Strong));
  ASSERT_FALSE(strong.open.empty());
  EXPECT_EQ(strong.open[0].finding.kind, FindingKind::Regression);
  EXPECT_EQ(strong.open[0].finding.level, Level::Confirmed);
  EXPECT_NEAR(*strong.open[0].finding.ratio, 1.25, 0.01);
  EXPECT_FALSE(anything_confirmed(replay(parse_results(regression(), Gate::Weak))));
}

TEST(Replay, BadLinesAreNamedAndConfuseNothing) {
  const auto clean = replay(parse_results(regression(), Gate::Strong));
  std::string text = "{\"canary\":\"triad\",\"val\n\nnull\n[1,2]\n{\"canary\":\"triad\",\"value\":NaN}\n" +
                     regression() + "{\"canary\":\"triad\",\"value\":1e999}\n{\"canary\"";
  const auto result = replay(parse_results(text, Gate::Strong));
  EXPECT_EQ(result.bad.size(), 6U);
  EXPECT_EQ(result.bad[0].line, 1U);
  ASSERT_EQ(result.findings.size(), clean.findings.size());
  EXPECT_EQ(result.findings[0].finding.time, clean.findings[0].finding.time);
}

TEST(Replay, AResetForgetsTheDevice) {
  const BaselineReset reset{"0000:03:00.0", "", "root", "new card", 1.79e9};
  const auto text = triad(1, 800, "a") + to_json_line(reset) + "\n" + triad(2, 400, "a");
  const auto file = parse_results(text, Gate::Strong);
  EXPECT_EQ(file.entries.size(), 3U);
  const auto result = replay(file);
  ASSERT_EQ(result.baselines.size(), 1U);
  EXPECT_EQ(result.baselines[0].runs, 1U);
}

TEST(Compare, OneMachineBeforeAndAfter) {
  const auto rows = compare_epochs({parse_results(regression(), Gate::Strong)}, "6.12.1", "6.12.2");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].verdict, "slower");
  EXPECT_NEAR(rows[0].slower, 802.0 / 642.0, 1e-3);
  EXPECT_EQ(rows[0].before_runs, 60U);
  EXPECT_FALSE(rows[0].fleet);
  EXPECT_TRUE(compare_epochs({parse_results(regression(), Gate::Strong)}, "6.12.1", "6.13").empty());
}

TEST(Compare, AFleetSeesThreePercentThatOneMachineMayNot) {
  std::vector<ResultFile> files;
  for (int machine = 0; machine < 10; ++machine) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += triad(i, 800 + machine, "a") + triad(100 + i, (800 + machine) / 1.03, "b");
    files.push_back(parse_results(text, Gate::Strong));
    files.back().path = "machine" + std::to_string(machine);
  }
  const auto rows = compare_epochs(files, "a", "b");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].machines, 10U);
  ASSERT_TRUE(rows[0].fleet);
  EXPECT_TRUE(rows[0].fleet->slower);
}

void collect(const Json& json, std::set<std::string>& keys) {
  if (json.is_array())
    for (const Json& item : json) collect(item, keys);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (key != "software" && key != "notes" && key != "environment") collect(value, keys);
  }
}

TEST(CanaryManual, DocumentsEveryKeyThatIsEmitted) {
  std::ifstream file(GPUHEALTH_SOURCE_DIR "/docs/json.md");
  std::stringstream text;
  text << file.rdbuf();
  std::set<std::string> keys;
  const auto replayed =
      replay(parse_results("broken\n" + stall(1, 2010, "a") + stall(20, 2010, "a") + regression(), Gate::Strong));
  collect(json_replay(replayed), keys);
  collect(json_comparison("a", "b", compare_epochs({parse_results(regression(), Gate::Strong)}, "6.12.1", "6.12.2")),
          keys);
  collect(json_canaries(), keys);
  canary::Measurement m;
  m.reason = "x";
  m.p25 = m.worst = m.user_ms = m.system_ms = m.gpu_ms = 1;
  m.samples = 1;
  m.mappings = {{}};
  m.environment = m.notes = m.software = {{"a", "b"}};
  collect(json_run({{m, 1, 1, "ok"}}, "ok"), keys);
  EXPECT_GT(keys.size(), 50U);
  for (const auto& key : keys)
    EXPECT_TRUE(text.str().find("`" + key + "`") != std::string::npos ||
                text.str().find("\"" + key + "\"") != std::string::npos)
        << key;
}

TEST(CanaryManual, ListsEveryCanaryAndCause) {
  std::ifstream file(GPUHEALTH_SOURCE_DIR "/docs/canaries.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const auto& row : canary::all_canaries())
    EXPECT_THAT(text.str(), testing::HasSubstr("`" + std::string(row.canary) + "`"));
  for (const auto& row : health::all_causes())
    EXPECT_THAT(text.str(), testing::HasSubstr("| `" + std::string(row.name) + "` | " + std::string(row.text) + " |"));
}

TEST(CanaryPages, ReadAsSentences) {
  const auto result = replay(parse_results(
      stall(1000, 12, "7.0.11") + stall(2000, 2010, "7.0.12") + stall(2016, 2010, "7.0.12"), Gate::Strong));
  const auto text = render(render_replay(result, {}), {});
  EXPECT_THAT(text, testing::HasSubstr("confirmed stall  h2d_file_rw on 0000:03:00.0"));
  EXPECT_THAT(text, testing::HasSubstr("Cause: software regression: host-memory mapping path"));
  EXPECT_THAT(text, testing::HasSubstr("Changed: kernel 7.0.11 -> 7.0.12"));
}

}  // namespace
}  // namespace gpuhealth::cli
