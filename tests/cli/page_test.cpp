// SPDX-License-Identifier: Apache-2.0
#include "cli/page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::pipe;
using samples::screen;

TEST(Page, ColoursOnlyWhereTheTerminalHasThem) {
  Page page;
  page.line({{"bad", Tone::Critical}, {" plain"}});
  EXPECT_EQ(render(page, pipe()), "bad plain\n");
  Terminal coloured = screen();
  coloured.colour = true;
  EXPECT_EQ(render(page, coloured), "\x1b[1;31mbad\x1b[0m plain\n");
}

TEST(Page, WhatComesFromHardwareCannotReachTheTerminalAsControl) {
  Page page;
  page.line({{"name \x1b[2J\x07", Tone::Warning}});
  page.paragraph("text \x1b[2J", 2, 0);
  add_table(page, {{"\x1b[1m"}}, {{{"\x1b[2J"}}}, pipe());
  EXPECT_EQ(render(page, pipe()).find('\x1b'), std::string::npos);
}

TEST(Page, LinesAreCutAtTheScreensEdgeAndNotInAPipe) {
  Page page;
  page.line({{"12345"}, {"67890"}, {"abc"}});
  EXPECT_EQ(render(page, screen(20)), "1234567890abc\n");
  EXPECT_EQ(render(page, {true, false, true, 10, 24}), "123456789…\n");
  EXPECT_EQ(render(page, {true, false, true, 8, 24}), "1234567…\n");
  EXPECT_EQ(render(page, pipe()), "1234567890abc\n");
}

TEST(Page, TheFlexibleColumnGivesWay) {
  Page page;
  add_table(page, {{"GPU", Align::Left, true}, {"temp", Align::Right}}, {{{"A very long name of a GPU"}, {"45 C"}}},
            screen(20));
  EXPECT_EQ(render(page, screen(20)), "GPU             temp\nA very long n…  45 C\n");
}

TEST(Page, WideNamesKeepTheColumnsStraight) {
  Page page;
  add_table(page, {{""}, {""}}, {{{"显卡"}, {"x"}}, {{"abcd"}, {"y"}}}, pipe());
  EXPECT_EQ(render(page, pipe()), "显卡  x\nabcd  y\n");
}

TEST(Terminal, APipeIsNeitherColouredNorCutUnlessAskedFor) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const Terminal automatic = detect_terminal(fds[1], ColourChoice::Auto);
  EXPECT_FALSE(automatic.interactive);
  EXPECT_FALSE(automatic.colour);
  EXPECT_EQ(automatic.columns, 0U);
  EXPECT_TRUE(detect_terminal(fds[1], ColourChoice::Always).colour);
  close(fds[0]);
  close(fds[1]);
}

TEST(Terminal, NoColorIsRespectedOnATerminal) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  const int tty = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(tty, 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(detect_terminal(tty, ColourChoice::Auto).colour);
  EXPECT_FALSE(detect_terminal(tty, ColourChoice::Never).colour);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(detect_terminal(tty, ColourChoice::Auto).colour);
  EXPECT_TRUE(detect_terminal(tty, ColourChoice::Always).colour);
  unsetenv("NO_COLOR");
  close(tty);
  close(master);
}

}  // namespace
}  // namespace gpuhealth::cli
