// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace gpuhealth {
namespace {

TEST(Nearest, IsTheWordWithTheFewestEdits) {
  const std::vector<std::string> names = {"status", "devices", "history"};
  EXPECT_EQ(nearest("statsu", names), "status");
  EXPECT_EQ(nearest("STATUS", names), "status");
  EXPECT_EQ(nearest("frobnicate", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("devcies", std::array<std::string_view, 2>{"device", "devices"}), "devices");
}

TEST(Edits, CountLettersPutInTakenOutAndReplaced) {
  EXPECT_EQ(edits("kitten", "sitting"), 3u);  // k-s, e-i, +g
  EXPECT_EQ(edits("", "abc"), 3u);
  EXPECT_EQ(edits("abc", ""), 3u);
  EXPECT_EQ(edits("same", "same"), 0u);
  EXPECT_EQ(edits(std::string(1 << 20, 'x'), "x"), 63u) << "only the beginning of what is typed counts";
}

}  // namespace
}  // namespace gpuhealth
