// SPDX-License-Identifier: Apache-2.0
// The distribution's tools: slow is not hung.
#include "grub/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuhealth::grub {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Result<void> run(const std::string& script, const ToolPatience& patience) {
  const auto tree = Tree::open("/");
  if (!tree) return tl::unexpected<Error>(tree.error());
  return run_tool(*tree, {"sh", "-c", script}, patience);
}

TEST(Tool, OneThatSpeaksNowAndThenHasItsTime) {
  const auto done = run("for i in 1 2 3 4 5 6 7 8; do echo Found linux image; sleep 0.5; done", {3s, 120s});
  EXPECT_TRUE(done) << done.error().text;
}

TEST(Tool, OneThatSaysNothingIsEndedWithItsChildren) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = run("echo Found; sleep 600 & sleep 600", {1s, 600s});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(done.error().text, "sh said nothing for 1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 300s);
}

TEST(Tool, OneThatNeverStopsTalkingIsEndedToo) {
  const auto done = run("while :; do echo Found; sleep 0.1; done", {60s, 1s});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "sh did not end within 1 s");
}

TEST(Tool, OneThatFailsIsQuoted) {
  const auto done = run("echo no such disk >&2; exit 3", {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("sh failed with exit code 3: no such disk"));
}

TEST(Tool, OneThatIsNotThereIsSaid) {
  const auto tree = Tree::open("/");
  ASSERT_TRUE(tree);
  const auto done = run_tool(*tree, {"no-such-tool"});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("no-such-tool cannot be run"));
}

// Two looks at the menu, each as long as the tool may take, and some time for the rest.
TEST(Tool, AnOperationIsWaitedForLongerThanItsTools) {
  EXPECT_GT(std::chrono::milliseconds(kOperationMost), 2 * ToolPatience{}.most);
}

}  // namespace
}  // namespace gpuhealth::grub
