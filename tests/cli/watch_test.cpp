// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cli/text.hpp"
#include "cli/watch_view.hpp"
#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Values = std::vector<std::optional<double>>;

Terminal terminal(std::size_t columns, std::size_t rows) {
  return {true, false, true, columns, rows};
}

TEST(Sparkline, GoesFromTheLeastToTheGreatestTheNewestOnTheRight) {
  EXPECT_EQ(sparkline(Values{10, 20, 30, 40, 50, 60, 70, 80}, 10, 1, true), "  ▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(Values{0, 100}, 2, 1, false), "_#");
}

TEST(Sparkline, ShowsOnlyTheLatestThatFitAndScalesToThem) {
  EXPECT_EQ(sparkline(Values{1000, 1, 9}, 2, 1, true), "▁█");
}

TEST(Sparkline, NoiseIsFlatAndAMissingValueIsAGap) {
  EXPECT_EQ(sparkline(Values{61, 62, std::nullopt, 61}, 4, 4, true), "▁▁ ▁");
  EXPECT_EQ(sparkline(Values{std::nullopt, std::nullopt}, 3, 4, true), "   ");
  EXPECT_EQ(sparkline(Values{std::numeric_limits<double>::quiet_NaN(), 1}, 2, 4, true), " ▁");
  EXPECT_EQ(sparkline({}, 0, 4, true), "");
}

TEST(Trails, KeepTheLatestLooksAndForgetAGpuThatIsGone) {
  Trails trails;
  Machine machine = samples::healthy();
  for (int i = 0; i < 300; ++i) trails.note(machine);
  EXPECT_EQ(trails.of(machine.devices[0].id, 0).size(), 240U);
  EXPECT_EQ(trails.of(machine.devices[0].id, 0).back(), 62.0) << "the junction stands before the edge";
  EXPECT_EQ(trails.of(machine.devices[1].id, 0).back(), std::nullopt) << "asleep";
  const std::string gone = machine.devices[0].id;
  machine.devices.erase(machine.devices.begin());
  trails.note(machine);
  EXPECT_THAT(trails.of(gone, 0), IsEmpty());
}

TEST(Watch, ShowsEachGpuWithItsCurvesTheConditionsAndTheLastActions) {
  Trails trails;
  Machine machine = samples::overheating();
  dbus::ActionView action;
  action.kind = "power-cap";
  action.state = "confirmed";
  action.device_label = "AMD Radeon RX 7900 XTX at 0000:03:00.0";
  action.before = "339 W";
  action.after = "300 W";
  action.acted = samples::noon();
  machine.actions = {action};
  trails.note(machine);
  machine.devices[0].readings[2].value = 350;
  trails.note(machine);
  const std::string text = render(render_watch(machine, trails, terminal(80, 24)), terminal(80, 24));
  EXPECT_THAT(text, HasSubstr("2 of 3 GPUs need attention.\n\ncritical  GPU is overheating\n"));
  EXPECT_THAT(text, HasSubstr("AMD Radeon RX 7900 XTX  0000:03:00.0  critical\n"));
  EXPECT_THAT(text, HasSubstr("power      350 W "));
  EXPECT_THAT(text, HasSubstr("▁█\n")) << "287 W, then 350 W";
  EXPECT_THAT(text, HasSubstr("link    x16 Gen4 "));
  EXPECT_THAT(text, HasSubstr("Radeon RX 580 Series  0000:09:00.0  ok, asleep\nAMD Instinct MI300X"));
  EXPECT_THAT(text, HasSubstr("slowed: TEMP_HOTSPOT\n"));
  EXPECT_THAT(text, HasSubstr("power-cap: confirmed on AMD Radeon RX 7900 XTX"));
  EXPECT_THAT(text, HasSubstr("339 W ->\n  300 W\n"));
}

TEST(Watch, NoLineIsWiderThanTheTerminal) {
  Trails trails;
  Machine machine = samples::overheating();
  machine.devices[0].name = std::string(300, 'N');
  for (int i = 0; i < 250; ++i) trails.note(machine);
  for (const std::size_t columns : {20U, 40U, 80U, 81U, 119U, 200U, 500U}) {
    const Terminal t = terminal(columns, 24);
    const Page page = render_watch(machine, trails, t);
    for (const Line& line : page.lines()) {
      std::size_t total = 0;
      for (const Span& span : line) total += width(span.text);
      EXPECT_LE(total, std::max<std::size_t>(columns, 40));
      EXPECT_LE(width(render(line, t)), columns);
    }
  }
}

TEST(Watch, WhereThereIsNoUtf8TheCurvesAreOfAscii) {
  Trails trails;
  const Machine machine = samples::overheating();
  trails.note(machine);
  Terminal t = terminal(80, 24);
  t.utf8 = false;
  EXPECT_THAT(render(render_watch(machine, trails, t), t), Not(HasSubstr("▁")));
}

TEST(Keys, AreTakenAlsoWhenTheyComeInPieces) {
  std::string typed = "j\x1b[5";
  EXPECT_THAT(take_keys(typed), ElementsAre(Key::Down));
  typed += "~?";
  EXPECT_THAT(take_keys(typed), ElementsAre(Key::PageUp, Key::Help));
  EXPECT_EQ(typed, "");
}

TEST(Keys, OfOtherMeaningArePassedOverWithTheirTail) {
  std::string typed = "xz\x1b[1;5q\x1b[15~\xc3\xa4\x1b[Bq";  // Ctrl-something, F5, a letter of two bytes
  EXPECT_THAT(take_keys(typed), ElementsAre(Key::Down, Key::Quit));
  EXPECT_EQ(typed, "");
}

TEST(Scroll, StaysWithinThePage) {
  Scroll scroll;
  EXPECT_TRUE(scroll.move(Key::Bottom, 100, 23));
  EXPECT_EQ(scroll.first, 77U);
  scroll.move(Key::Down, 100, 23);
  EXPECT_EQ(scroll.first, 77U);
  scroll.move(Key::PageUp, 100, 23);
  EXPECT_EQ(scroll.first, 55U);
  scroll.keep_within(10, 23);
  EXPECT_EQ(scroll.first, 0U);
  scroll.move(Key::Up, 100, 23);
  EXPECT_EQ(scroll.first, 0U);
  EXPECT_FALSE(scroll.move(Key::Help, 100, 23));
}

TEST(Frame, FillsTheScreenAndSaysWhereOneIs) {
  Page page;
  for (int i = 1; i <= 30; ++i) page.line({{std::to_string(i)}});
  Scroll scroll{5};
  const Terminal t = terminal(40, 10);
  EXPECT_EQ(render(frame(page, scroll, "q quit", t), t), "6\n7\n8\n9\n10\n11\n12\n13\n14\n6-14 of 30  q quit\n");
  Page little;
  little.line({{"one"}});
  EXPECT_EQ(render(frame(little, scroll, "q quit", t), t), "one\n\n\n\n\n\n\n\n\nq quit\n");
}

}  // namespace
}  // namespace gpuhealth::cli
