// SPDX-License-Identifier: Apache-2.0
#include "cli/plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render.hpp"
#include "cli/text.hpp"
#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::noon;
using samples::pipe;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// One point a minute until noon.
Series series(ReadingId id, std::initializer_list<double> values) {
  Series s;
  s.device = "uid-1";
  s.pci = "0000:03:00.0";
  s.label = "GPU at 0000:03:00.0";
  s.metric = find_reading(id);
  s.until = noon();
  s.since = noon() - std::chrono::minutes(values.size());
  auto time = s.since;
  for (const double v : values) {
    s.points.push_back({time, v, v, v});
    time += std::chrono::minutes(1);
  }
  return s;
}

class PlotTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST(Axis, EndsAndMarksAreRound) {
  const Axis a = choose_axis(31, 112);
  EXPECT_DOUBLE_EQ(a.low, 0);
  EXPECT_DOUBLE_EQ(a.high, 150);
  EXPECT_DOUBLE_EQ(a.step, 50);
  const Axis b = choose_axis(0, 4);
  EXPECT_DOUBLE_EQ(b.low, 0);
  EXPECT_DOUBLE_EQ(b.high, 4);
  EXPECT_DOUBLE_EQ(b.step, 1);
}

TEST(Axis, AConstantSeriesGetsRoomAroundIt) {
  const Axis zero = choose_axis(0, 0);
  EXPECT_DOUBLE_EQ(zero.low, 0);
  EXPECT_GT(zero.high, 0);
  const Axis fifty = choose_axis(50, 50);
  EXPECT_LT(fifty.low, 50);
  EXPECT_GT(fifty.high, 50);
}

TEST_F(PlotTest, ARampInAscii) {
  // 20 columns for 20 minutes; rows stand at 4, 3, 2, 1, 0.
  const auto lines = plot(
      series(ReadingId::TemperatureEdge, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}), {23, 5}, false);
  EXPECT_THAT(lines, ElementsAre("4 +                ****",  //
                                 "3 +            ****    ",  //
                                 "2 +        ****        ",  //
                                 "1 +    ****            ",  //
                                 "0 +****                ",  //
                                 "  +--------------------",  //
                                 "   11:40   11:50  12:00"));
}

TEST_F(PlotTest, ASpikeInsideABucketIsDrawn) {
  Series s = series(ReadingId::TemperatureEdge, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  s.points[10].max = 4;
  const auto lines = plot(s, {23, 5}, false);
  EXPECT_EQ(lines[0], "4 +          *         ");
  EXPECT_EQ(lines[2], "2 +          *         ");
  EXPECT_EQ(lines[4], "0 +********************");
}

TEST_F(PlotTest, AGapInTimeStaysAGap) {
  Series s = series(ReadingId::TemperatureEdge, {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0});
  s.points.erase(s.points.begin() + 5, s.points.begin() + 15);
  EXPECT_EQ(plot(s, {23, 5}, false)[0], "4 +*****          **** ");
}

TEST_F(PlotTest, BrailleHasFourRowsAndTwoColumnsOfDotsACharacter) {
  // 40 minutes on 20 characters: the first half lies on the floor, the second at the top.
  Series s = series(ReadingId::TemperatureEdge, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  const auto lines = plot(s, {23, 5}, true);
  EXPECT_EQ(lines[0], "4 ┤          ⡏⠉⠉⠉⠉⠉⠉⠉⠉⠉");
  EXPECT_EQ(lines[2], "2 ┤          ⡇         ");
  EXPECT_EQ(lines[4], "0 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⠇         ");
  EXPECT_EQ(width(lines[4]), 23U);
}

TEST_F(PlotTest, NoPointsDrawNothing) {
  EXPECT_TRUE(plot(series(ReadingId::TemperatureEdge, {}), {80, 10}, true).empty());
  const Series none = series(ReadingId::TemperatureEdge, {});
  EXPECT_THAT(render(render_history({&none, 1}, pipe(), {80, 10}), pipe()), HasSubstr("no value between"));
}

TEST_F(PlotTest, PointsOutsideTheTimeAreNotDrawn) {
  Series s = series(ReadingId::TemperatureEdge, {1, 2, 3, 4});
  s.since += std::chrono::minutes(2);
  s.until -= std::chrono::minutes(1);
  EXPECT_EQ(plot(s, {60, 5}, true).size(), 7U);
}

TEST_F(PlotTest, BytesAreMarkedInTheirOwnUnit) {
  const auto lines = plot(series(ReadingId::VramUsed, {0, 4294967296.0}), {60, 5}, false);
  EXPECT_THAT(lines[0], HasSubstr("4 GiB +"));
  EXPECT_THAT(lines[4], HasSubstr("0 B +"));
}

TEST_F(PlotTest, TheSummaryIsBelowThePlot) {
  const Series s = series(ReadingId::TemperatureEdge, {40, 50, 60, 50});
  const std::string text = render(render_history({&s, 1}, pipe(), {60, 5}), pipe());
  EXPECT_THAT(text, HasSubstr("GPU at 0000:03:00.0  temperature.edge, C\n"));
  EXPECT_THAT(text, HasSubstr("min 40 C   mean 50 C   max 60 C   last 50 C   (4 points)\n"));
}

TEST_F(PlotTest, APipeGetsPlainMarks) {
  const Series s = series(ReadingId::TemperatureEdge, {40, 50, 60, 50});
  Terminal utf8_pipe = pipe();
  utf8_pipe.utf8 = true;
  EXPECT_THAT(render(render_history({&s, 1}, utf8_pipe, {60, 5}), utf8_pipe), Not(HasSubstr("┤")));
}

}  // namespace
}  // namespace gpuhealth::cli
