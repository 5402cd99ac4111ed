// SPDX-License-Identifier: Apache-2.0
// What people write into gpuhealthd.yaml, and what they are told of it.
#include "daemon/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConfigTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((dir_.path() / file).parent_path());
    std::ofstream(dir_.path() / file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string path(const std::string& file) const { return dir_.string() + "/" + file; }
  [[nodiscard]] Result<Config> load() const { return load_config(dir_.string()); }
  // The mistakes in gpuhealthd.yaml with this text, its path taken away.
  std::string mistakes(const std::string& text) const {
    write("gpuhealthd.yaml", text);
    const auto config = load();
    if (config) return "none";
    EXPECT_EQ(config.error().code, ErrorCode::InvalidInput);
    std::string out = config.error().text;
    const auto prefix = path("gpuhealthd.yaml");
    for (auto at = out.find(prefix); at != std::string::npos; at = out.find(prefix)) out.erase(at, prefix.size());
    return out;
  }

  test::TempDir dir_;
};

TEST_F(ConfigTest, WithoutAnyFileTheDefaultsAreInForce) {
  const auto config = load();
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->settings.sampling_interval, 2000);
  EXPECT_EQ(config->settings.history_size, 268435456);
  EXPECT_EQ(config->settings.history_coarse, 730);
  EXPECT_EQ(config->thresholds.overheating_for_s, 10);
  EXPECT_TRUE(config->files.empty());
}

TEST_F(ConfigTest, WithoutItsFolderTheDefaultsAreInForce) {
  const auto config = load_config(path("none/such"));
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->settings.sampling_interval, 2000);
}

TEST_F(ConfigTest, AnEmptyFileSetsNothing) {
  for (const auto* text : {"", "\n\n", "# nothing\n", "---\n", "sampling:\n", "sampling:\nhealth:\n  overheating:\n"}) {
    EXPECT_EQ(mistakes(text), "none") << text;
    EXPECT_EQ(load()->settings.sampling_interval, 2000) << text;
  }
}

TEST_F(ConfigTest, EachKindOfValueIsRead) {
  EXPECT_EQ(mistakes("sampling:\n  interval: 1.5s\n  slow-every: 3\n  patience: 300ms\n  rediscover: 1h\n"
                     "history:\n  size: 1GiB\n  fine: 14d\n  medium: 90 d\nhealth:\n  overheating:\n    margin: 2.5\n"),
            "none");
  const auto config = load();
  EXPECT_EQ(config->settings.sampling_interval, 1500);
  EXPECT_EQ(config->settings.sampling_slow_every, 3);
  EXPECT_EQ(config->settings.sampling_patience, 300);
  EXPECT_EQ(config->settings.sampling_rediscover, 3600000);
  EXPECT_EQ(config->settings.history_size, 1073741824);
  EXPECT_EQ(config->settings.history_fine, 14);
  EXPECT_EQ(config->settings.history_medium, 90);
  EXPECT_EQ(config->thresholds.overheating_margin_c, 2.5);
}

TEST_F(ConfigTest, AnUnknownKeyGetsAHint) {
  EXPECT_EQ(mistakes("sampling:\n  intervall: 2s\n"),
            ":2:3: unknown key \"sampling.intervall\"; did you mean \"sampling.interval\"?");
  EXPECT_EQ(mistakes("health:\n  overheating:\n    margins: 1\n"),
            ":3:5: unknown key \"health.overheating.margins\"; did you mean \"health.overheating.margin\"?");
}

TEST_F(ConfigTest, AKeyThatIsNearNothingGetsNoHint) {
  EXPECT_EQ(mistakes("zzzzzzzzzzzz: 1\n"), ":1:1: unknown key \"zzzzzzzzzzzz\"");
}

TEST_F(ConfigTest, AKeyThatStandsTwiceNamesTheFirst) {
  EXPECT_EQ(mistakes("sampling:\n  interval: 1s\n  patience: 1s\n  interval: 2s\n"),
            ":4:3: \"interval\" stands twice; the first is at line 2");
  EXPECT_EQ(mistakes("history:\n  fine: 7d\nhistory:\n  fine: 7d\n"),
            ":3:1: \"history\" stands twice; the first is at line 1");
}

TEST_F(ConfigTest, ZeroNeedsNoUnit) {
  EXPECT_EQ(mistakes("canary:\n  interval: 0\n"), "none");
  EXPECT_NE(mistakes("sampling:\n  interval: 0\n"), "none") << "out of its range";
}

TEST_F(ConfigTest, AWrongUnitNamesTheRightOnes) {
  EXPECT_EQ(mistakes("sampling:\n  interval: 2 parsecs\n"),
            ":2:13: sampling.interval: \"2 parsecs\" is not a number with a unit (h, min, s, ms)");
  EXPECT_EQ(mistakes("sampling:\n  interval: 2\n"),
            ":2:13: sampling.interval: \"2\" is not a number with a unit (h, min, s, ms)");
  EXPECT_EQ(mistakes("history:\n  size: 256MB\n"),
            ":2:9: history.size: \"256MB\" is not a number with a unit (GiB, MiB, KiB, B)");
  EXPECT_EQ(mistakes("history:\n  fine: 7h\n"), ":2:9: history.fine: \"7h\" is not a number with a unit (d)");
  EXPECT_EQ(mistakes("sampling:\n  slow-every: 8s\n"), ":2:15: sampling.slow-every: \"8s\" is not a number");
}

TEST_F(ConfigTest, OddNumbersAreNoNumbers) {
  EXPECT_EQ(mistakes("sampling:\n  slow-every: 1.5\n"), ":2:15: sampling.slow-every: \"1.5\" must be a whole number");
  EXPECT_EQ(mistakes("sampling:\n  slow-every: inf\n"), ":2:15: sampling.slow-every: \"inf\" is not a number");
  EXPECT_EQ(mistakes("sampling:\n  slow-every: \"\"\n"), ":2:15: sampling.slow-every: \"\" is not a number");
  EXPECT_EQ(mistakes("health:\n  overheating:\n    margin: nan\n"),
            ":3:13: health.overheating.margin: \"nan\" is not a number");
  EXPECT_EQ(mistakes("health:\n  overheating:\n    margin: 5C\n"),
            ":3:13: health.overheating.margin: \"5C\" is not a number");
}

TEST_F(ConfigTest, AValueOutsideItsRangeNamesTheRange) {
  EXPECT_EQ(mistakes("sampling:\n  interval: 100ms\n"), ":2:13: sampling.interval: \"100ms\" is outside 500ms to 1min");
  EXPECT_EQ(mistakes("sampling:\n  interval: 61s\n"), ":2:13: sampling.interval: \"61s\" is outside 500ms to 1min");
  EXPECT_EQ(mistakes("sampling:\n  slow-every: -1\n"), ":2:15: sampling.slow-every: \"-1\" is outside 1 to 1000");
  EXPECT_EQ(mistakes("sampling:\n  interval: 500ms\n"), "none");
  EXPECT_EQ(mistakes("sampling:\n  interval: 1min\n"), "none");
  EXPECT_THAT(mistakes("health:\n  overheating:\n    margin: 31\n"),
              StartsWith(":3:13: health.overheating.margin: overheating.margin must be 0 to 30 C, not 31"));
}

TEST_F(ConfigTest, AListWhereKeysBelongIsAMistake) {
  EXPECT_EQ(mistakes("- interval: 2s\n"), ":1:1: the file must hold keys, as in \"sampling:\"");
  EXPECT_EQ(mistakes("sampling:\n  - interval: 2s\n"), ":2:3: sampling must hold keys, as in \"sampling:\"");
  EXPECT_EQ(mistakes("sampling: 2s\n"), ":1:11: sampling must hold keys, as in \"sampling:\"");
  EXPECT_EQ(mistakes("just words\n"), ":1:1: the file must hold keys, as in \"sampling:\"");
}

TEST_F(ConfigTest, AMapWhereAValueBelongsIsAMistake) {
  EXPECT_EQ(mistakes("sampling:\n  interval: {a: 1}\n"), ":2:13: sampling.interval must be one value, such as 2s");
  EXPECT_EQ(mistakes("sampling:\n  interval: [1s, 2s]\n"), ":2:13: sampling.interval must be one value, such as 2s");
  EXPECT_THAT(mistakes("sampling:\n  interval:\n"), EndsWith("sampling.interval must be one value, such as 2s"));
}

TEST_F(ConfigTest, AKeyThatIsNoWordIsAMistake) {
  EXPECT_EQ(mistakes("[a, b]: 1\n"), ":1:1: a key must be a word");
}

TEST_F(ConfigTest, TwoDocumentsInOneFileAreAMistake) {
  EXPECT_EQ(mistakes("sampling:\n  interval: 1s\n---\nsampling:\n  interval: 3s\n"),
            ": holds more than one document; keep one");
}

// Found by fuzz_config: YAML::LoadAll of yaml-cpp 0.7 never returns from it.
TEST_F(ConfigTest, DocumentsWithoutEndEnd) {
  EXPECT_NE(mistakes("\x2c"
                     "\x73"
                     "\xad"
                     "\x2c"
                     "\x69"
                     "\x2d"
                     "\x2d"
                     "\x0a"
                     "\x68"
                     "\x69"
                     "\x73"
                     "\x74"
                     "\x6f"
                     "\x72"
                     "\x3a"
                     "\x1c"
                     "\x0a"
                     ""),
            "none");
}

TEST_F(ConfigTest, TextThatIsNotYamlIsSaidWithItsPlace) {
  EXPECT_THAT(mistakes("sampling: [1s\n"), HasSubstr(":2:1: is not YAML: "));
  EXPECT_THAT(mistakes("sampling: {interval: 2s\n"), HasSubstr("is not YAML: "));
  EXPECT_THAT(mistakes("sampling:\n\tinterval: 2s\n"), HasSubstr(":2:10: is not YAML: "));
  EXPECT_THAT(mistakes("sampling: *nobody\n"), HasSubstr("is not YAML: "));
}

TEST_F(ConfigTest, AnAnchorThatHoldsItselfEnds) {
  EXPECT_EQ(mistakes("sampling: &loop\n  sampling: *loop\n"),
            ":2:3: unknown key \"sampling.sampling\"; did you mean \"sampling.deadline\"?");
  EXPECT_NE(mistakes("&loop\nhealth: *loop\n"), "none");
  EXPECT_NE(mistakes("health: &loop\n  overheating: *loop\n"), "none");
}

TEST_F(ConfigTest, AnAnchorMayBeUsed) {
  EXPECT_EQ(mistakes("sampling:\n  patience: &t 700ms\n  deadline: *t\n"), "none");
  EXPECT_EQ(load()->settings.sampling_deadline, 700);
}

TEST_F(ConfigTest, DeepNestingEnds) {
  EXPECT_NE(mistakes(std::string(400'000, '[')), "none");
  EXPECT_NE(mistakes(std::string(400'000, '{')), "none");
  std::string stairs;
  for (int i = 0; i < 1000; ++i) stairs += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(mistakes(stairs), "none");
  std::string dashes;
  for (int i = 0; i < 100'000; ++i) dashes += "- ";
  EXPECT_NE(mistakes(dashes), "none");
}

TEST_F(ConfigTest, AHugeFileIsNotRead) {
  EXPECT_EQ(mistakes(std::string((1 << 20) + 1, '#')), ": is larger than 1 MiB; no configuration is");
  EXPECT_EQ(mistakes(std::string(1 << 20, '#')), "none");
}

TEST_F(ConfigTest, BinaryGarbageIsAMistakeAndNoMore) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 181 + i / 7) % 256);
  EXPECT_NE(mistakes(bytes), "none");
  EXPECT_NE(mistakes(std::string(100, '\0')), "none");
  EXPECT_NE(mistakes("\xff\xfe\xff\xff"), "none");
}

TEST_F(ConfigTest, WhatIsShownOfAFileIsShortAndPlain) {
  EXPECT_EQ(mistakes("\"a\\e[31m\\nb\": 1\n"), ":1:1: unknown key \"a?[31m?b\"");
  EXPECT_THAT(mistakes("a: *b\x1b[31m\n"), ::testing::Not(HasSubstr("\x1b")));
  EXPECT_EQ(mistakes(std::string(500, 'k') + ": 1\n"), ":1:1: unknown key \"" + std::string(60, 'k') + "…\"");
}

TEST_F(ConfigTest, OfVeryManyMistakesTheFirstHundredAreSaid) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "nonsense" + std::to_string(i) + ": 1\n";
  const auto said = mistakes(text);
  EXPECT_EQ(std::ranges::count(said, '\n'), 100);
  EXPECT_THAT(said, HasSubstr(":100:1: unknown key \"nonsense99\""));
  EXPECT_THAT(said, EndsWith(": more mistakes follow"));
}

TEST_F(ConfigTest, AFolderInPlaceOfTheFileIsAMistake) {
  fs::create_directory(path("gpuhealthd.yaml"));
  const auto config = load();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().text, path("gpuhealthd.yaml") + ": cannot be read; expected a plain file");
}

TEST_F(ConfigTest, APipeInPlaceOfTheFileIsNotOpened) {
  ASSERT_EQ(mkfifo(path("gpuhealthd.yaml").c_str(), 0600), 0);
  const auto config = load();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().text, path("gpuhealthd.yaml") + ": cannot be read; expected a plain file");
}

TEST_F(ConfigTest, ALinkToNowhereIsAMistakeAndNotNoFile) {
  fs::create_symlink("nowhere", path("gpuhealthd.yaml"));
  const auto config = load();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().text, path("gpuhealthd.yaml") + ": cannot be read; expected a plain file");
}

TEST_F(ConfigTest, DropInsFollowTheFileInTheOrderOfTheirNames) {
  write("gpuhealthd.yaml", "sampling:\n  interval: 1s\n  patience: 100ms\n  deadline: 1s\n");
  write("gpuhealthd.yaml.d/20-site.yaml", "sampling:\n  interval: 3s\n");
  write("gpuhealthd.yaml.d/10-vendor.yaml", "sampling:\n  interval: 4s\n  patience: 200ms\n");
  write("gpuhealthd.yaml.d/30-backup.yaml.bak", "nonsense: 1\n");
  const auto config = load();
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->settings.sampling_interval, 3000);
  EXPECT_EQ(config->settings.sampling_patience, 200);
  EXPECT_EQ(config->settings.sampling_deadline, 1000);
  EXPECT_THAT(config->files, ::testing::ElementsAre(path("gpuhealthd.yaml"), path("gpuhealthd.yaml.d/10-vendor.yaml"),
                                                    path("gpuhealthd.yaml.d/20-site.yaml")));
}

TEST_F(ConfigTest, DropInsWorkWithoutTheFile) {
  write("gpuhealthd.yaml.d/a.yaml", "sampling:\n  interval: 3s\n");
  EXPECT_EQ(load()->settings.sampling_interval, 3000);
}

TEST_F(ConfigTest, AllMistakesOfAllFilesAreSaidAtOnce) {
  write("gpuhealthd.yaml", "sampling:\n  interval: 0s\n  slow-every: x\n");
  write("gpuhealthd.yaml.d/a.yaml", "histroy:\n  fine: 7d\n");
  write("gpuhealthd.yaml.d/b.yaml", "sampling: [\n");
  write("gpuhealthd.yaml.d/c.yaml", "history:\n  fine: 7\n");
  const auto config = load();
  ASSERT_FALSE(config);
  const auto& text = config.error().text;
  EXPECT_THAT(text, StartsWith(path("gpuhealthd.yaml") + ":2:13: sampling.interval: \"0s\" is outside 500ms to 1min\n" +
                               path("gpuhealthd.yaml") + ":3:15: sampling.slow-every: \"x\" is not a number\n" +
                               path("gpuhealthd.yaml.d/a.yaml") + ":1:1: unknown key \"histroy\""));
  EXPECT_THAT(text, HasSubstr("\n" + path("gpuhealthd.yaml.d/b.yaml") + ":"));
  EXPECT_THAT(text, EndsWith("\n" + path("gpuhealthd.yaml.d/c.yaml") +
                             ":2:9: history.fine: \"7\" is not a number with a unit (d)"));
}

TEST(ConfigValues, AreWrittenAsOneWouldWriteThem) {
  EXPECT_EQ(format_setting(SettingKind::Duration, 2000), "2s");
  EXPECT_EQ(format_setting(SettingKind::Duration, 1500), "1500ms");
  EXPECT_EQ(format_setting(SettingKind::Duration, 60000), "1min");
  EXPECT_EQ(format_setting(SettingKind::Duration, 7200000), "2h");
  EXPECT_EQ(format_setting(SettingKind::Duration, 0), "0ms");
  EXPECT_EQ(format_setting(SettingKind::Size, 268435456), "256MiB");
  EXPECT_EQ(format_setting(SettingKind::Days, 7), "7d");
  EXPECT_EQ(format_setting(SettingKind::Count, 8), "8");
}

}  // namespace
}  // namespace gpuhealth::daemon
