// SPDX-License-Identifier: Apache-2.0
// The command line as it is built, against the manual and the shells' completions.
#include "cli/command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include <CLI/CLI.hpp>

#include "tests/paths.hpp"

namespace gpuhealth::cli {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every "--option" of the program and its commands.
std::vector<std::string> all_options() {
  CLI::App app;
  Context context;
  Action chosen;
  build_command_line(app, context, chosen);
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
  };
  add(app);
  for (const CLI::App* sub : app.get_subcommands({})) add(*sub);
  return names;
}

TEST(Manual, NamesEveryCommandAndOption) {
  const std::string text = std::regex_replace(read("docs/man/gpuhealthctl.1"), std::regex(R"(\\-)"), "-");
  ASSERT_FALSE(text.empty());
  for (const Command& command : all_commands()) {
    const std::regex heading(R"(\n\.TP\n(\.B |\\fB))" + std::string(command.name) + R"((\\fR|\n))");
    EXPECT_TRUE(std::regex_search(text, heading)) << command.name;
  }
  EXPECT_GT(all_options().size(), 14U);
  for (const std::string& option : all_options()) EXPECT_NE(text.find(option), std::string::npos) << option;
}

TEST(Completion, KnowsEveryCommandAndOption) {
  const std::string bash = read("cli/completion/gpuhealthctl.bash");
  const std::string zsh = read("cli/completion/_gpuhealthctl");
  const std::string fish = read("cli/completion/gpuhealthctl.fish");
  for (const Command& command : all_commands()) {
    for (const std::string* text : {&bash, &zsh, &fish})
      EXPECT_NE(text->find(command.name), std::string::npos) << command.name;
  }
  for (const std::string& option : all_options()) {
    EXPECT_NE(bash.find(option), std::string::npos) << option;
    EXPECT_NE(zsh.find(option), std::string::npos) << option;
    EXPECT_NE(fish.find("-l " + option.substr(2)), std::string::npos) << option;
  }
}

TEST(Completion, BashKnowsEveryMetricAndConditionType) {
  const std::string bash = read("cli/completion/gpuhealthctl.bash");
  for (const ReadingInfo& row : all_readings()) {
    const bool offered = row.keep == Keep::History && !row.name.starts_with("ras.");
    EXPECT_TRUE(!offered || bash.find(row.name) != std::string::npos) << row.name;
  }
  for (const ConditionInfo& row : all_conditions()) EXPECT_NE(bash.find(row.name), std::string::npos) << row.name;
}

}  // namespace
}  // namespace gpuhealth::cli
