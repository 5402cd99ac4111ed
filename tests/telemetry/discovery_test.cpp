// SPDX-License-Identifier: Apache-2.0
#include "telemetry/discovery.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;

class DiscoveryTest : public ::testing::Test {
 protected:
  void write(const std::vector<sim::Card>& cards) { ASSERT_TRUE(sim::write_machine(root_.path(), cards)); }
  Discovery look() {
    auto found = discover(root_.string(), NameTable::load());
    EXPECT_TRUE(found) << found.error().text;
    return found ? std::move(*found) : Discovery{};
  }
  test::TempDir root_;
};

TEST_F(DiscoveryTest, FindsEachCardOnceByItsAddress) {
  write({sim::idle_card(sim::rx7900xtx(), 0), sim::idle_card(sim::rx580(), 1), sim::idle_card(sim::phoenix_apu(), 2)});
  const auto found = look();
  ASSERT_EQ(found.devices.size(), 3u);
  EXPECT_EQ(to_string(found.devices[0].pci), "0000:03:00.0");
  EXPECT_EQ(found.devices[0].device_id, 0x744c);
  EXPECT_EQ(found.devices[0].driver, "amdgpu");
  EXPECT_EQ(found.devices[0].card_node, "card0");
  EXPECT_EQ(found.devices[0].render_node, "renderD128");
  EXPECT_EQ(found.devices[0].name, "AMD Radeon RX 7900 XTX");
  EXPECT_EQ(found.devices[1].family, AsicFamily::VolcanicIslands);
  EXPECT_EQ(found.devices[2].family, AsicFamily::ApuRdna3);
}

TEST_F(DiscoveryTest, TheBridgesOfACardAreNoGpus) {
  write({sim::idle_card(sim::rx9070(), 0)});
  EXPECT_EQ(look().devices.size(), 1u);
}

TEST_F(DiscoveryTest, ACardWithoutDriverIsThereAllTheSame) {
  auto card = sim::idle_card(sim::rx6900xt(), 0);
  card.state.driver_bound = false;
  write({card});
  const auto found = look();
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].driver, "");
}

TEST_F(DiscoveryTest, IdentityDoesNotDependOnCardNumbers) {
  const auto first = sim::idle_card(sim::rx580(), 0);
  const auto second = sim::idle_card(sim::rx580(), 1);
  write({first, second});
  const auto before = look();
  ASSERT_TRUE(sim::remove_card(root_.path(), second.place.gpu));
  ASSERT_TRUE(sim::remove_card(root_.path(), first.place.gpu));
  ASSERT_TRUE(sim::add_card(root_.path(), second));  // now card0
  ASSERT_TRUE(sim::add_card(root_.path(), first));
  const auto after = look();
  ASSERT_EQ(after.devices.size(), 2u);
  EXPECT_NE(before.devices[1].card_node, after.devices[1].card_node);
  EXPECT_EQ(before.devices[0].id(), after.devices[0].id());
  EXPECT_EQ(before.devices[1].id(), after.devices[1].id());
  EXPECT_NE(before.devices[0].id(), before.devices[1].id()) << "two cards of one model";
}

TEST_F(DiscoveryTest, TheHwmonFolderIsTheOneThatSaysAmdgpu) {
  const auto card = sim::idle_card(sim::rx580(), 0);
  write({card});
  const auto dir = device_dir(root_.string(), card.place.gpu);
  const auto right = hwmon_dir(dir);
  ASSERT_FALSE(right.empty());
  fs::create_directories(dir + "/hwmon/hwmon0");
  std::ofstream(dir + "/hwmon/hwmon0/name") << "nvme\n";
  EXPECT_EQ(hwmon_dir(dir), right);
}

TEST_F(DiscoveryTest, AFolderWithoutSysfsIsAClearError) {
  const auto found = discover(root_.string(), NameTable::load());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::NotFound);
  EXPECT_NE(found.error().text.find("sys/bus/pci/devices"), std::string::npos);
}

TEST_F(DiscoveryTest, AMachineWithoutGpusIsFine) {
  write({});
  EXPECT_TRUE(look().devices.empty());
}

}  // namespace
}  // namespace gpuhealth::telemetry
