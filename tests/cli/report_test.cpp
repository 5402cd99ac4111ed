// SPDX-License-Identifier: Apache-2.0
// What a report concludes, shows and leaves out.
#include "cli/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cli/report_bundle.hpp"
#include "samples.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

canary::Measurement run(int hour, const char* kernel, double bandwidth) {
  canary::Measurement m;
  m.canary = "triad";
  m.metric = "bandwidth";
  m.unit = "GB/s";
  m.better = canary::Better::Higher;
  m.value = bandwidth;
  m.device = "0000:03:00.0";
  m.backend = "hip";
  m.time = static_cast<double>(to_microseconds(samples::noon())) / 1e6 - 86400 + hour * 3600;
  m.epoch = kernel;
  m.software = {{"kernel", kernel}, {"runtime", "HIP 6.1"}};
  return m;
}

Report sample() {
  Report r;
  r.made = samples::noon();
  r.since = samples::noon() - std::chrono::hours(24);
  r.machine = samples::overheating();
  for (int i = 0; i < 6; ++i) r.measurements.push_back(run(i, "7.0.11", 800));
  for (int i = 6; i < 12; ++i) r.measurements.push_back(run(i, "7.0.12", 400));
  Series s{r.machine.devices[0].id,
           r.machine.devices[0].pci,
           label(r.machine.devices[0]),
           find_reading("temperature.edge"),
           r.since,
           r.made,
           {}};
  for (int i = 0; i < 24; ++i) s.points.push_back({r.since + std::chrono::hours(i), 40.0 + i, 45.0 + i, 50.0 + i});
  r.series = {s};
  r.events = {
      {r.since + std::chrono::hours(1), "device.added", Severity::Info, r.machine.devices[0].id, "a <card> came", "b"},
      {r.since - std::chrono::hours(1), "condition.confirmed", Severity::Info, "", "twice", "b"}};
  conclude(r);
  return r;
}

TEST(Report, MarksWhereTheKernelChanged) {
  const auto r = sample();
  ASSERT_EQ(r.changes.size(), 1U);
  EXPECT_EQ(r.changes[0].before, "7.0.11");
  EXPECT_EQ(r.changes[0].after, "7.0.12");
  EXPECT_EQ(r.changes[0].time, samples::noon() - std::chrono::hours(18));
}

TEST(Report, RatiosAreToTheFirstSoftware) {
  const auto r = sample();
  ASSERT_EQ(r.ratios.size(), 1U);
  EXPECT_EQ(r.ratios[0].name, "triad bandwidth");
  EXPECT_DOUBLE_EQ(r.ratios[0].points.front().slower, 1.0);
  EXPECT_DOUBLE_EQ(r.ratios[0].points.back().slower, 2.0);
}

TEST(Report, TheTableSaysWhichKernelIsSlowOnWhichGpuUnderWhichRuntime) {
  const auto r = sample();
  ASSERT_EQ(r.compatibility.size(), 1U);
  const auto& row = r.compatibility[0];
  EXPECT_EQ(row.device, "0000:03:00.0");
  EXPECT_EQ(row.runtime, "HIP 6.1");
  EXPECT_DOUBLE_EQ(row.kernels.at("7.0.11").slower, 1.0);
  EXPECT_DOUBLE_EQ(row.kernels.at("7.0.12").slower, 2.0);
  EXPECT_EQ(row.kernels.at("7.0.12").runs, 6U);
}

TEST(Report, AWrongResultIsNotHiddenByItsSpeed) {
  auto r = sample();
  auto wrong = run(13, "7.0.12", 800);
  wrong.status = canary::Status::Wrong;
  r.measurements.push_back(wrong);
  r.compatibility.clear();
  conclude(r);
  EXPECT_EQ(r.compatibility.back().kernels.at("7.0.12").bad, "wrong");
}

TEST(Report, TheTimelineIsNewestFirstAndSaysAConditionOnce) {
  const auto r = sample();
  EXPECT_TRUE(std::ranges::is_sorted(r.timeline, std::ranges::greater{}, &TimelineRow::time));
  EXPECT_TRUE(std::ranges::none_of(r.timeline, [](const auto& row) { return row.text == "twice"; }));
}

TEST(ReportPage, NeedsNothingFromANetworkAndRunsNothing) {
  const auto html = report_html(sample());
  for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<script", "<link", "<iframe", "onload"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, ForeignTextIsText) {
  const auto html = report_html(sample());
  EXPECT_THAT(html, HasSubstr("a &lt;card&gt; came"));
  EXPECT_THAT(html, Not(HasSubstr("a <card> came")));
}

TEST(ReportPage, CanBeReadWithoutSeeingIt) {
  const auto html = report_html(sample());
  EXPECT_THAT(html, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(html, HasSubstr("role=\"img\" aria-labelledby=\"plot1-t plot1-d\""));
  EXPECT_THAT(html, HasSubstr("temperature.edge: least 40 C, mean 56"));
  EXPECT_THAT(html, HasSubstr("class=\"skip\" href=\"#summary\""));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\">7.0.12</th>"));
  EXPECT_THAT(html, HasSubstr("2x slower</span>: triad bandwidth"));
  EXPECT_THAT(html, HasSubstr("kernel 7.0.12</text>"));
}

TEST(ReportPage, AnEmptyReportIsAPage) {
  Report r;
  r.made = samples::noon();
  r.since = samples::noon();
  conclude(r);
  EXPECT_THAT(report_html(r), HasSubstr("No canary has run"));
  EXPECT_FALSE(dump(report_json(r)).empty());
}

TEST(ReportMasks, WholeWordsGoAndPartsOfWordsStay) {
  Masks masks;
  masks.add("jane", "user1");
  masks.add("jane-pc", "host");
  masks.add("al", "user2");
  EXPECT_EQ(masks.apply("jane on jane-pc said janet and al (jane)."), "user1 on host said janet and al (user1).");
}

TEST(ReportBundle, LeavesOutWhatNamesASingleCard) {
  const auto r = sample();
  ASSERT_FALSE(r.machine.devices[0].unique_id.empty());
  for (const auto& file : bundle_files(r, false))
    EXPECT_THAT(file.text, Not(HasSubstr(r.machine.devices[0].unique_id))) << file.name;
  bool kept = false;
  for (const auto& file : bundle_files(r, true))
    kept = kept || file.text.find(r.machine.devices[0].unique_id) != std::string::npos;
  EXPECT_TRUE(kept);
}

TEST(ReportBundle, IsATarThatOthersCanUnpack) {
  const test::TempDir folder;
  const auto path = folder.string() + "/r.tar.zst";
  const auto done = write_bundle(path, bundle_files(sample(), false), samples::noon());
  ASSERT_TRUE(done) << done.error().text;
  const auto listed = test::run_command("tar --zstd -tf " + path);
  EXPECT_EQ(listed.code, 0) << listed.out;
  for (const char* name :
       {"README", "report.html", "report.json", "devices.json", "events.json", "history.csv", "canary.jsonl"})
    EXPECT_THAT(listed.out, HasSubstr("gpuhealth-report/" + std::string(name) + "\n"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ReportBundle, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(write_bundle("/nonexistent/r.tar.zst", {}, samples::noon()));
  EXPECT_FALSE(write_whole("/nonexistent/r.html", "x"));
}

}  // namespace
}  // namespace gpuhealth::cli
