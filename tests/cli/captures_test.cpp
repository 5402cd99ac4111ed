// SPDX-License-Identifier: Apache-2.0
// What people would be told of real cards that were healthy when they were captured: nothing.
#include "tests/support/captures.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "health/engine.hpp"
#include "telemetry/inspect.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth {
namespace {

namespace fs = std::filesystem;

TEST(CapturesOfHealthyCards, RaiseNothing) {
  CAPTURES_OR_RETURN(captures);
  const test::TempDir root;
  std::string command =
      "/usr/bin/python3 '" + (captures.parent_path() / "tools/mksysroot").string() + "' '" + root.string() + "'";
  for (const auto& entry : fs::directory_iterator(captures / "sysfs")) command += " '" + entry.path().string() + "'";
  ASSERT_EQ(std::system((command + " >/dev/null").c_str()), 0);
  const auto seen = telemetry::inspect(root.string());
  ASSERT_TRUE(seen) << seen.error().text;
  EXPECT_EQ(seen->devices.size(), 20u);
  for (const auto& one : seen->devices) {
    for (const auto& c : health::judge_once(one.device, one.sample, health::Thresholds{}))
      ADD_FAILURE() << to_string(one.device.pci) << ": " << c.detail;
    EXPECT_TRUE(one.sample.throttle.empty()) << to_string(one.device.pci);
  }
}

}  // namespace
}  // namespace gpuhealth
