// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl check and report as they are run, without a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.hpp"
#include "tests/support/program.hpp"

namespace gpuhealth::cli {
namespace {

using testing::StartsWith;

test::Outcome run(const std::string& arguments) {
  return test::run_command(GPUHEALTH_BIN_DIR "/gpuhealthctl --bus unix:path=/nonexistent/bus 2>&1 " + arguments);
}

TEST(PluginProgram, WithoutADaemonItIsUnknown) {
  const auto outcome = run("check");
  EXPECT_EQ(outcome.code, 3) << outcome.out;
  EXPECT_THAT(outcome.out, StartsWith("GPU UNKNOWN - cannot connect"));
  EXPECT_EQ(run("check --npd").code, 2);
}

TEST(PluginProgram, AWrongCommandLineIsUnknownToo) {
  EXPECT_EQ(run("check --nonsense").code, 3);
  EXPECT_EQ(run("check --timeout 0").code, 3);
  EXPECT_EQ(run("status --nonsense").code, 2);
}

TEST(ReportProgram, ChecksItsOptionsAndNeedsTheDaemon) {
  EXPECT_EQ(run("report --bundle r.tar.gz").code, 2);
  EXPECT_EQ(run("report --keep-names").code, 2);
  EXPECT_EQ(run("report --since yesterday").code, 2);
  EXPECT_EQ(run("report").code, 4);
}

}  // namespace
}  // namespace gpuhealth::cli
