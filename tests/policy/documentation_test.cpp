// SPDX-License-Identifier: Apache-2.0
// docs/policy-reference.md has a row for every key, action, parameter, event type and key of a test, and no others;
// what docs/policy.md shows is sound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "policy/keys.hpp"
#include "policy/scenario_file.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::policy {
namespace {

std::string page(const std::string& name) {
  std::ifstream in(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/" + name);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> rows() {
  std::vector<std::string> out;
  for (int i = 1; i < static_cast<int>(SectionId::Count); ++i) {
    for (const auto& key : keys_of(static_cast<SectionId>(i))) {
      const auto form = key.value == ValueKind::Section       ? fmt::format("keys of {}", name_of(key.child))
                        : key.value == ValueKind::SectionList ? fmt::format("a list of {}", name_of(key.child))
                                                              : std::string(form_of(key.value));
      out.push_back(fmt::format("| `{}`{} | {} | {} | {} |", key.key, key.required ? " (must)" : "", form, key.standard,
                                key.meaning));
    }
  }
  for (const auto& action : all_actions()) {
    out.push_back(fmt::format("| `{}` | {} | {} |", action.name, action.does, action.undo));
    for (const auto& param : params_of(action.kind))
      out.push_back(fmt::format("| `{}: {}`{} | {} | {} |", action.name, param.name, param.required ? " (must)" : "",
                                param.standard, param.meaning));
  }
  for (const auto& event : all_event_types()) out.push_back(fmt::format("| `{}` | {} |", event.name, event.meaning));
  for (const auto& key : all_test_keys())
    out.push_back(
        fmt::format("| {} | `{}`{} | {} |", key.section, key.key, key.required ? " (must)" : "", key.meaning));
  return out;
}

TEST(PolicyReference, HasARowForEverything) {
  const auto text = page("policy-reference.md");
  for (const auto& row : rows()) EXPECT_NE(text.find("\n" + row + "\n"), std::string::npos) << row;
}

TEST(PolicyReference, HasNoRowForWhatDoesNotExist) {
  const auto expected = rows();
  std::istringstream lines(page("policy-reference.md"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.find('`') == std::string::npos) continue;
    EXPECT_NE(std::find(expected.begin(), expected.end(), line), expected.end()) << line;
  }
}

// Blocks that begin with apiVersion are whole files.
TEST(PolicyTutorial, ShowsWhatIsSound) {
  const auto text = page("policy.md");
  int blocks = 0;
  for (std::size_t at = text.find("```yaml\napiVersion"); at != std::string::npos;
       at = text.find("```yaml\napiVersion", at + 1)) {
    const auto block = text.substr(at + 8, text.find("```", at + 8) - at - 8);
    ++blocks;
    if (block.find("kind: PolicyTest") != std::string::npos) {
      Mistakes mistakes;
      const auto parsed = yaml::parse(block);
      ASSERT_TRUE(parsed.root.has_value());
      (void)read_test(*parsed.root, mistakes);
      for (const auto& m : mistakes.take()) ADD_FAILURE() << yaml::line_of("policy.md", m);
      continue;
    }
    for (const auto& m : parse_policy("policy.md", block).mistakes)
      ADD_FAILURE() << yaml::line_of("policy.md", m) << "\n" << block;
  }
  EXPECT_GE(blocks, 2);
}

}  // namespace
}  // namespace gpuhealth::policy
