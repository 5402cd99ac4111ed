// SPDX-License-Identifier: Apache-2.0
#include "telemetry/driver_module.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

TEST(DriverModule, SaysItsParametersAndWhereItCameFrom) {
  const test::TempDir root;
  const auto dir = root.path() / "sys/module/amdgpu";
  std::filesystem::create_directories(dir / "parameters");
  std::ofstream(dir / "srcversion") << "9B3E1A0C5D7F\n";
  std::ofstream(dir / "parameters/runpm") << "-1\n";
  std::ofstream(dir / "parameters/lockup_timeout") << "\n";
  const auto module = read_driver_module(root.string());
  ASSERT_TRUE(module);
  EXPECT_EQ(module->version, "");
  EXPECT_EQ(module->srcversion, "9B3E1A0C5D7F");
  EXPECT_EQ(module->parameters, (std::map<std::string, std::string>{{"lockup_timeout", ""}, {"runpm", "-1"}}));
}

TEST(DriverModule, IsNullWhereTheDriverIsNotLoaded) {
  const test::TempDir root;
  EXPECT_FALSE(read_driver_module(root.string()));
}

}  // namespace
}  // namespace gpuhealth::telemetry
