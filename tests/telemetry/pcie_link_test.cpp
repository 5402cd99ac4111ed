// SPDX-License-Identifier: Apache-2.0
#include "telemetry/pcie_link.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;

class PcieChainTest : public ::testing::Test {
 protected:
  // Makes a function below what was made before; returns its folder.
  fs::path add(const std::string& address, const std::string& vendor, const std::string& device) {
    at_ /= address;
    fs::create_directories(at_);
    std::ofstream(at_ / "vendor") << vendor << '\n';
    std::ofstream(at_ / "device") << device << '\n';
    return at_;
  }
  test::TempDir root_;
  fs::path at_ = root_.path() / "sys/devices/pci0000:00";
};

TEST_F(PcieChainTest, NaviCardEndsAtTheUpstreamPortOfItsSwitch) {
  const auto slot = add("0000:00:01.1", "0x1022", "0x14db");
  const auto up = add("0000:01:00.0", "0x1002", "0x1478");
  const auto down = add("0000:02:00.0", "0x1002", "0x1479");
  const auto gpu = add("0000:03:00.0", "0x1002", "0x744c");
  const auto chain = find_pcie_chain(gpu.string());
  EXPECT_EQ(chain.card_end, up.string());
  EXPECT_EQ(chain.platform_end, slot.string());
  EXPECT_EQ(chain.aer_sources, (std::vector{gpu.string(), down.string(), up.string(), slot.string()}));
}

TEST_F(PcieChainTest, Vega10BoardsHaveBridgesWithTheCpuVendorsId) {
  const auto slot = add("0000:00:03.1", "0x1022", "0x1453");
  const auto up = add("0000:06:00.0", "0x1022", "0x1470");
  add("0000:07:00.0", "0x1022", "0x1471");
  const auto gpu = add("0000:08:00.0", "0x1002", "0x687f");
  const auto chain = find_pcie_chain(gpu.string());
  EXPECT_EQ(chain.card_end, up.string());
  EXPECT_EQ(chain.platform_end, slot.string());
}

TEST_F(PcieChainTest, PolarisSitsInTheSlotItself) {
  const auto slot = add("0000:00:01.0", "0x8086", "0x1901");
  const auto gpu = add("0000:01:00.0", "0x1002", "0x67df");
  const auto chain = find_pcie_chain(gpu.string());
  EXPECT_EQ(chain.card_end, gpu.string());
  EXPECT_EQ(chain.platform_end, slot.string());
}

TEST_F(PcieChainTest, APlatformSwitchIsThePlatformEnd) {
  add("0000:00:01.0", "0x8086", "0x1901");
  add("0000:01:00.0", "0x10b5", "0x8747");
  const auto plx = add("0000:02:08.0", "0x10b5", "0x8747");
  const auto gpu = add("0000:03:00.0", "0x1002", "0x738c");
  EXPECT_EQ(find_pcie_chain(gpu.string()).platform_end, plx.string());
}

TEST_F(PcieChainTest, ATreeWithoutParentsHasNoPlatformEnd) {
  const auto gpu = add("0000:03:00.0", "0x1002", "0x744c");
  const auto chain = find_pcie_chain(gpu.string());
  EXPECT_EQ(chain.card_end, gpu.string());
  EXPECT_EQ(chain.platform_end, "");
}

}  // namespace
}  // namespace gpuhealth::telemetry
