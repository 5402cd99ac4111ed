// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_unit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

CanaryUnit example() {
  return canary_unit("gpuhealthd.service", "/usr/libexec/gpuhealth-canary", {"--tier", "0"}, "0000:03:00.0",
                     {"/dev/dri/renderD128", "/dev/kfd"}, 300);
}

TEST(CanaryUnit, IsAnUnprivilegedUserWithItsOwnNodesAndADeadline) {
  const auto unit = example();
  EXPECT_EQ(unit.name, "gpuhealth-canary-0000:03:00.0.service");
  EXPECT_EQ(unit.start.front(), "/usr/bin/systemd-run");
  for (const char* word :
       {"--uid=gpuhealth-canary", "--property=DevicePolicy=closed", "--property=DeviceAllow=/dev/dri/renderD128 rw",
        "--property=DeviceAllow=/dev/kfd rw", "--property=CapabilityBoundingSet=", "--property=NoNewPrivileges=yes",
        "--property=CacheDirectory=gpuhealth-canary", "--setenv=HOME=/var/cache/gpuhealth-canary",
        "--property=RuntimeMaxSec=300", "--property=KillMode=control-group"})
    EXPECT_THAT(unit.start, Contains(word));
}

TEST(CanaryUnit, EndsWithTheDaemonAndIsStoppedByName) {
  const auto unit = example();
  EXPECT_THAT(unit.start, Contains("--property=BindsTo=gpuhealthd.service"));
  EXPECT_THAT(unit.stop, ElementsAre("/usr/bin/systemctl", "--no-block", "--quiet", "stop", unit.name));
}

TEST(CanaryUnit, TheProgramAndItsArgumentsComeLast) {
  const auto words = example().start;
  ASSERT_GE(words.size(), 4U);
  EXPECT_THAT(std::vector(words.end() - 4, words.end()),
              ElementsAre("--", "/usr/libexec/gpuhealth-canary", "--tier", "0"));
}

TEST(CanaryUnit, JustInTimeCompilersMayWriteCode) {
  EXPECT_THAT(example().start, Not(Contains(StartsWith("--property=MemoryDenyWriteExecute"))));
}

class DeviceNodesTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const auto whole = folder_.path() / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  test::TempDir folder_;
};

TEST_F(DeviceNodesTest, OfAnAmdGpuAreItsRenderNodeAndKfd) {
  write("sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
  write("sys/bus/pci/devices/0000:03:00.0/drm/card1/dev", "226:1\n");
  write("sys/bus/pci/devices/0000:03:00.0/drm/renderD129/dev", "226:129\n");
  EXPECT_THAT(device_nodes(folder_.path().string(), "0000:03:00.0"), ElementsAre("/dev/dri/renderD129", "/dev/kfd"));
}

TEST_F(DeviceNodesTest, OfANvidiaGpuAreItsOwnMinorAndTheSharedOnes) {
  write("sys/bus/pci/devices/0000:0a:00.0/vendor", "0x10de\n");
  write("proc/driver/nvidia/gpus/0000:0a:00.0/information", "Model: \t\t NVIDIA H200\nDevice Minor: \t 3\n");
  EXPECT_THAT(device_nodes(folder_.path().string(), "0000:0a:00.0"),
              ElementsAre("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia3", "/dev/nvidiactl"));
}

TEST_F(DeviceNodesTest, OfAnUnknownDeviceAreNone) {
  EXPECT_TRUE(device_nodes(folder_.path().string(), "0000:03:00.0").empty());
}

}  // namespace
}  // namespace gpuhealth::daemon
