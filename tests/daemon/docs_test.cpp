// SPDX-License-Identifier: Apache-2.0
// The pages say what the tables say: settings.def, sources.def.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/config.hpp"
#include "telemetry/source_table.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

namespace fs = std::filesystem;
using Row = std::vector<std::string>;

std::string page(const std::string& name) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// The rows of the first Markdown table whose header is `header`, cells trimmed.
std::vector<Row> table(const std::string& text, const std::string& header) {
  std::vector<Row> rows;
  bool inside = false;
  for (const auto& line : lines(text)) {
    if (line == header) {
      inside = true;
    } else if (inside && !line.starts_with("|")) {
      break;
    } else if (inside && !line.starts_with("|---")) {
      Row row;
      std::istringstream in(line.substr(1));
      for (std::string cell; std::getline(in, cell, '|');) row.push_back(cell.substr(1, cell.size() - 2));
      rows.push_back(row);
    }
  }
  return rows;
}

std::string shown(const SettingInfo& s, std::int64_t value) {
  return format_setting(s.kind, value);
}

TEST(ConfigurationPage, HasARowForEachSettingAndNoOther) {
  std::vector<Row> expected;
  for (const auto& s : all_settings()) {
    expected.push_back({"`" + std::string(s.key) + "`", shown(s, s.default_value),
                        shown(s, s.low) + " to " + shown(s, s.high), std::string(s.text)});
  }
  ASSERT_EQ(expected.size(), 15u);
  EXPECT_EQ(table(page("docs/configuration.md"), "| key | default | range | what it does |"), expected);
}

TEST(ConfigurationManual, HasAParagraphForEachSettingAndNoOther) {
  std::vector<std::string> expected;
  for (const auto& s : all_settings()) {
    std::string key(s.key);
    for (std::size_t at = 0; (at = key.find('-', at)) != std::string::npos; at += 2) key.insert(at, "\\");
    std::string text(s.text);
    text[0] = static_cast<char>(std::toupper(text[0]));
    expected.push_back(".B " + key);
    expected.push_back(text + ". Default " + shown(s, s.default_value) + ", from " + shown(s, s.low) + " to " +
                       shown(s, s.high) + ".");
  }
  expected.emplace_back(".B health.*");
  std::vector<std::string> found;
  bool keys = false;
  for (const auto& line : lines(page("docs/man/gpuhealthd.yaml.5"))) {
    if (line.starts_with(".SH ")) keys = line == ".SH KEYS";
    if (!keys || line.starts_with(".SH ") || line == ".TP") continue;
    found.push_back(line);
    if (line == ".B health.*") break;
  }
  EXPECT_EQ(found, expected);
}

std::string tier_name(telemetry::SourceTier tier) {
  switch (tier) {
    case telemetry::SourceTier::Fast:
      return "fast";
    case telemetry::SourceTier::Slow:
      return "slow";
    case telemetry::SourceTier::Rare:
      break;
  }
  return "rare";
}

// The file as installed, with the '#' taken from before each setting.
std::string uncommented() {
  std::string out;
  for (const auto& line : lines(page("etc/gpuhealthd.yaml"))) {
    const bool prose = line.starts_with("# ");
    const bool comment = prose || !line.starts_with("#");
    if (!comment || line.starts_with("#  ")) out += line.substr(1) + "\n";
  }
  return out;
}

TEST(ConfigurationFile, SetsNothingAsInstalled) {
  test::TempDir dir;
  fs::copy_file(std::string(GPUHEALTH_SOURCE_DIR) + "/etc/gpuhealthd.yaml", dir.path() / "gpuhealthd.yaml");
  const auto config = load_config(dir.string());
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->files.size(), 1u);
  for (const auto& s : all_settings()) EXPECT_EQ(config->settings.*s.field, s.default_value) << s.key;
}

TEST(ConfigurationFile, ShowsTheDefaults) {
  test::TempDir dir;
  std::ofstream(dir.path() / "gpuhealthd.yaml") << uncommented();
  const auto config = load_config(dir.string());
  ASSERT_TRUE(config) << config.error().text;
  for (const auto& s : all_settings()) EXPECT_EQ(config->settings.*s.field, s.default_value) << s.key;
  for (const auto& t : health::all_thresholds()) EXPECT_EQ(config->thresholds.*t.field, t.default_value) << t.key;
}

TEST(ConfigurationFile, HasALineForEachSetting) {
  std::string section;
  std::vector<std::string> found;
  for (const auto& line : lines(uncommented())) {
    if (line.ends_with(":") && !line.starts_with(" ")) section = line.substr(0, line.size() - 1);
    if (section == "health" || line.empty() || !line.starts_with(" ")) continue;
    const auto colon = line.find(": ");
    const auto hash = line.find(" # ");
    ASSERT_NE(colon, std::string::npos) << line;
    ASSERT_NE(hash, std::string::npos) << line;
    auto value = line.substr(colon + 2, hash - colon - 2);
    value.erase(value.find_last_not_of(' ') + 1);
    found.push_back(section + "." + line.substr(2, colon - 2) + " = " + value + ": " + line.substr(hash + 3));
  }
  std::vector<std::string> expected;
  for (const auto& s : all_settings())
    expected.push_back(std::string(s.key) + " = " + shown(s, s.default_value) + ": " + std::string(s.text));
  EXPECT_EQ(found, expected);
}

TEST(TelemetryPage, HasARowForEachSourceAndNoOther) {
  std::vector<Row> expected;
  for (const auto& row : telemetry::source_table()) {
    std::string readings;
    for (const auto id : row.ids) {
      const auto* reading = find_reading(id);
      if (id == ReadingId::PlainCount || reading == nullptr) continue;
      readings += (readings.empty() ? "`" : ", `") + std::string(reading->name) + "`";
    }
    expected.push_back({"`" + std::string(row.file) + "`", tier_name(row.tier),
                        row.access == telemetry::SourceAccess::Wakes ? "yes" : "no", readings});
  }
  ASSERT_GT(expected.size(), 40u);
  EXPECT_EQ(table(page("docs/telemetry.md"), "| file | when | wakes | readings |"), expected);
}

}  // namespace
}  // namespace gpuhealth::daemon
