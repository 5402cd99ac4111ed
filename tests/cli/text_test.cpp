// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuhealth::cli {
namespace {

using testing::ElementsAre;

TEST(CleanText, EscapeSequencesLoseTheirEscape) {
  EXPECT_EQ(clean("\x1b[31mRX\x1b]0;title\x07 580"), "?[31mRX?]0;title? 580");
}

TEST(CleanText, EightBitControlsOfLatin1AndUtf8AreReplaced) {
  EXPECT_EQ(clean("a\x9b"
                  "31m"),
            "a?31m");
  EXPECT_EQ(clean("a\xc2\x9b"
                  "31m"),
            "a?31m");
  EXPECT_EQ(clean("a\x7f"), "a?");
}

TEST(CleanText, EveryControlCharacterIsReplaced) {
  for (int c = 0; c < 256; ++c) {
    for (const unsigned char left : clean(std::string(1, static_cast<char>(c)))) {
      EXPECT_GE(left, 0x20) << "byte " << c;
      EXPECT_LT(left, 0x7f) << "byte " << c;  // a lone byte above is no UTF-8
    }
  }
}

TEST(CleanText, DirectionOverridesAndZeroWidthAreReplaced) {
  EXPECT_EQ(clean("a\u202eb\u2066c\u200bd\ufeff"), "a?b?c?d?");
}

TEST(CleanText, NewlineAndTabBecomeSpaces) {
  EXPECT_EQ(clean("one\ntwo\tthree\r"), "one two three?");
}

TEST(CleanText, GoodUtf8Stays) {
  EXPECT_EQ(clean("Café ™ 显卡"), "Café ™ 显卡");
}

TEST(CleanText, OverlongSurrogateAndCutSequencesAreReplaced) {
  EXPECT_EQ(clean("\xc0\x9b"), "??");
  EXPECT_EQ(clean("\xe0\x80\x9b"), "???");
  EXPECT_EQ(clean("\xed\xa0\x80"), "???");
  EXPECT_EQ(clean("x\xe2\x82"), "x??");
  EXPECT_EQ(clean("\xf4\x90\x80\x80"), "????");
}

TEST(TextWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(width("abc"), 3U);
  EXPECT_EQ(width("é…"), 2U);
  EXPECT_EQ(width("显卡"), 4U);
  EXPECT_EQ(width("e\u0301"), 1U);
}

TEST(FitText, CutsWhatIsTooLongAndSaysSo) {
  EXPECT_EQ(fit("Radeon RX 580", 20), "Radeon RX 580");
  EXPECT_EQ(fit("Radeon RX 580", 10), "Radeon RX…");
  EXPECT_EQ(fit("Radeon RX 580", 10, false), "Radeon RX~");
  EXPECT_EQ(fit("Radeon", 0), "");
}

TEST(FitText, NeverCutsAWideCharacterInHalf) {
  EXPECT_EQ(fit("显卡显卡", 4), "显…");
  EXPECT_EQ(width(fit("显卡显卡", 6)), 5U);
}

TEST(WrapText, BreaksAtSpaces) {
  EXPECT_THAT(wrap("one two three four", 9), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(wrap("one two", 0), ElementsAre("one two"));
  EXPECT_THAT(wrap("a verylongword b", 5), ElementsAre("a", "verylongword", "b"));
}

TEST(AsciiText, ReplacesWhatATerminalCannotShow) {
  EXPECT_EQ(to_ascii("Café…"), "Caf??");
}

}  // namespace
}  // namespace gpuhealth::cli
