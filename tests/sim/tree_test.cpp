// SPDX-License-Identifier: Apache-2.0
#include "sim/tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/boot_id.hpp"
#include "core/fd.hpp"
#include "sim/machine.hpp"

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

class Tree : public ::testing::Test {
 protected:
  Tree() {
    std::string name = (fs::temp_directory_path() / "gpuhealth-tree-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Tree() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void write(const std::vector<Card>& cards) {
    const Result<void> written = write_machine(root_, cards);
    ASSERT_TRUE(written) << written.error().text;
  }
  [[nodiscard]] std::string read(const fs::path& path) const {
    std::ifstream file(root_ / path, std::ios::binary);
    if (!file) return "(no file)";
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] bool has(const fs::path& path) const { return fs::exists(root_ / path); }
  [[nodiscard]] std::vector<fs::path> dangling_links() const {
    std::vector<fs::path> links;
    for (const auto& entry : fs::recursive_directory_iterator(root_))
      if (entry.is_symlink() && !fs::exists(entry.path())) links.push_back(entry.path());
    return links;
  }

  fs::path root_;
};

unsigned u16_at(const std::string& bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes.at(at)) | static_cast<unsigned>(static_cast<unsigned char>(bytes.at(at + 1)))
                                                        << 8;
}

TEST_F(Tree, CardSitsBehindItsOwnSwitchAsTheKernelLaysItOut) {
  write({idle_card(rx7900xtx(), 0)});
  const fs::path gpu = "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0";
  EXPECT_EQ(read(gpu / "uevent"),
            "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1DA2:E471\nPCI_SLOT_NAME=0000:03:00.0\n"
            "MODALIAS=pci:v00001002d0000744Csv00001DA2sd0000E471bc03sc00i00\n");
  EXPECT_EQ(read(gpu.parent_path() / "device"), "0x1479\n");
  EXPECT_EQ(read(gpu.parent_path().parent_path() / "device"), "0x1478\n");
  EXPECT_EQ(read(gpu / "../../../vendor"), "0x1022\n");
  EXPECT_EQ(fs::canonical(root_ / "sys/class/drm/card0/device"), fs::canonical(root_ / gpu));
  EXPECT_EQ(fs::canonical(root_ / "sys/dev/char/226:128/device"), fs::canonical(root_ / gpu));
  EXPECT_EQ(fs::canonical(root_ / "sys/class/hwmon/hwmon2/device"), fs::canonical(root_ / gpu));
  EXPECT_EQ(fs::canonical(root_ / gpu / "driver"), fs::canonical(root_ / "sys/bus/pci/drivers/amdgpu"));
  EXPECT_TRUE(dangling_links().empty());
}

TEST_F(Tree, SensorsPrintKernelUnits) {
  write({loaded_card(rx7900xtx(), 0)});
  const fs::path hwmon = "sys/class/hwmon/hwmon2";
  EXPECT_EQ(read(hwmon / "name"), "amdgpu\n");
  EXPECT_EQ(read(hwmon / "temp2_input"), "78000\n");
  EXPECT_EQ(read(hwmon / "temp2_label"), "junction\n");
  EXPECT_EQ(read(hwmon / "temp2_crit"), "110000\n");
  EXPECT_EQ(read(hwmon / "temp2_crit_hyst"), "-273150\n");
  EXPECT_EQ(read(hwmon / "power1_average"), "260580000\n");  // 0.86 * 303 W
  EXPECT_EQ(read(hwmon / "power1_input"), "(no file)");
  EXPECT_EQ(read(hwmon / "power1_cap"), "303000000\n");
  EXPECT_EQ(read(hwmon / "freq1_input"), "2400000000\n");
  EXPECT_EQ(read("sys/class/drm/card0/device/pp_dpm_sclk"), "0: 500Mhz \n1: 2400Mhz *\n2: 2526Mhz \n");
  EXPECT_EQ(read("sys/class/drm/card0/device/pp_dpm_mclk"), "0: 96Mhz \n1: 456Mhz \n2: 772Mhz \n3: 1249Mhz *\n");
}

TEST_F(Tree, GpuMetricsHoldTheTableOfKernel612) {
  write(demo_machine());
  const std::string hot = read("sys/class/drm/card1/device/gpu_metrics");
  ASSERT_EQ(hot.size(), 120U);
  EXPECT_EQ(u16_at(hot, 0), 120U);
  EXPECT_EQ(u16_at(hot, 2), 0x0301U);    // format 1, content 3
  EXPECT_EQ(u16_at(hot, 4), 88U);        // temperature_edge
  EXPECT_EQ(u16_at(hot, 6), 112U);       // temperature_hotspot
  EXPECT_EQ(u16_at(hot, 22), 214U);      // average_socket_power
  EXPECT_EQ(u16_at(hot, 42), 0xffffU);   // average_socclk_frequency: not provided
  EXPECT_EQ(u16_at(hot, 54), 1480U);     // current_gfxclk
  EXPECT_EQ(u16_at(hot, 68), 1U << 2);   // throttle_status, Navi 2x: TEMP_HOTSPOT
  EXPECT_EQ(u16_at(hot, 76), 160U);      // pcie_link_speed
  EXPECT_EQ(u16_at(hot, 112), 0U);       // indep_throttle_status, low half
  EXPECT_EQ(u16_at(hot, 116), 1U << 4);  // bit 36: TEMP_HOTSPOT
}

TEST_F(Tree, MetricsTablesHaveTheSizesOfTheirRevisions) {
  write({idle_card(rx580(), 0), idle_card(phoenix_apu(), 1), idle_card(mi210(), 2), loaded_card(mi300x(), 3)});
  EXPECT_FALSE(has("sys/class/drm/card0/device/gpu_metrics"));
  const std::string apu = read("sys/class/drm/card1/device/gpu_metrics");
  ASSERT_EQ(apu.size(), 120U);
  EXPECT_EQ(u16_at(apu, 2), 0x0102U);  // 2.1
  EXPECT_EQ(u16_at(apu, 4), 4000U);    // temperature_gfx in centi-degrees
  EXPECT_EQ(u16_at(apu, 40), 4000U);   // average_socket_power in mW
  EXPECT_EQ(read("sys/class/drm/card2/device/gpu_metrics").size(), 120U);
  const std::string mi300 = read("sys/class/drm/card3/device/gpu_metrics");
  ASSERT_EQ(mi300.size(), 360U);
  EXPECT_EQ(u16_at(mi300, 2), 0x0501U);
  EXPECT_EQ(u16_at(mi300, 10), 645U);    // curr_socket_power: 0.86 * 750 W
  EXPECT_EQ(u16_at(mi300, 112), 16U);    // pcie_link_width
  EXPECT_EQ(u16_at(mi300, 312), 1995U);  // current_gfxclk[0]: 95 % of 2100
  EXPECT_EQ(u16_at(mi300, 352), 1300U);  // current_uclk
}

TEST_F(Tree, NarrowSlotLinkShowsAtTheUpstreamPortAndNotAtTheGpu) {
  write(demo_machine());
  const fs::path gpu = fs::canonical(root_ / "sys/class/drm/card2/device");
  const auto text = [&](const fs::path& path) { return read(path.lexically_relative(root_)); };
  EXPECT_EQ(text(gpu / "current_link_width"), "16\n");
  EXPECT_EQ(text(gpu / "current_link_speed"), "32.0 GT/s PCIe\n");
  const fs::path up = gpu.parent_path().parent_path();
  EXPECT_EQ(text(up / "device"), "0x1478\n");
  EXPECT_EQ(text(up / "current_link_width"), "4\n");
  EXPECT_EQ(text(up / "max_link_width"), "16\n");
  EXPECT_EQ(text(up.parent_path() / "current_link_width"), "4\n");
  const std::string config = text(up / "config");
  ASSERT_EQ(config.size(), 256U);
  EXPECT_EQ(u16_at(config, 0x76) >> 4 & 0x3f, 4U);                                               // LNKSTA: lanes
  EXPECT_EQ(u16_at(config, 0x76) & 0xf, 5U);                                                     // 32 GT/s
  EXPECT_EQ(text(gpu / "pp_dpm_pcie"), "0: 2.5GT/s, x16 250Mhz \n1: 32.0GT/s, x16 1143Mhz \n");  // no star
  EXPECT_EQ(u16_at(text(gpu / "gpu_metrics"), 76), 25U);  // the driver's clamp of Gen5
}

TEST_F(Tree, OpenFileSeesTheNewValue) {
  const Card card = idle_card(rx6900xt(), 0);
  write({card});
  const Fd fd(::open((root_ / "sys/class/hwmon/hwmon2/temp2_input").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd);
  ASSERT_TRUE(set(root_, card.place.gpu, "hwmon/temp2_input", "112000"));
  std::array<char, 32> buffer{};
  const ssize_t size = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(buffer.data(), static_cast<std::size_t>(size)), "112000\n");
  ASSERT_TRUE(set(root_, card.place.gpu, "hwmon/temp2_input", "9"));
  EXPECT_EQ(read("sys/class/hwmon/hwmon2/temp2_input"), "9\n");
}

TEST_F(Tree, UpdateWritesTheStateOfTheCardAndItsPorts) {
  Card card = idle_card(rx6900xt(), 0);
  write({card});
  card.state.junction_c = 91.5;
  card.state.link = {8.0, 8};
  card.state.runtime_status = "suspended";
  ASSERT_TRUE(update_card(root_, card));
  EXPECT_EQ(read("sys/class/hwmon/hwmon2/temp2_input"), "91500\n");
  EXPECT_EQ(read("sys/bus/pci/devices/0000:01:00.0/current_link_speed"), "8.0 GT/s PCIe\n");
  EXPECT_EQ(read("sys/bus/pci/devices/0000:03:00.0/power/runtime_status"), "suspended\n");
}

TEST_F(Tree, RemovedCardLeavesNoLinkBehind) {
  write(demo_machine());
  ASSERT_TRUE(remove_card(root_, {0, 6, 0, 0}));
  EXPECT_FALSE(has("sys/bus/pci/devices/0000:06:00.0"));
  EXPECT_FALSE(has("sys/bus/pci/devices/0000:04:00.0"));  // its switch went with it
  EXPECT_TRUE(has("sys/bus/pci/devices/0000:00:01.2"));   // its root port stays
  EXPECT_FALSE(has("sys/class/drm/card1"));
  EXPECT_FALSE(has("sys/class/kfd/kfd/topology/nodes/2"));
  EXPECT_TRUE(has("sys/class/drm/card2/device/uevent"));
  EXPECT_TRUE(dangling_links().empty());
}

TEST_F(Tree, AddedCardTakesTheFreeNumber) {
  write(demo_machine());
  ASSERT_TRUE(remove_card(root_, {0, 3, 0, 0}));
  ASSERT_TRUE(add_card(root_, idle_card(rx580(), 3)));
  EXPECT_EQ(read("sys/class/drm/card0/device/device"), "0x67df\n");
  EXPECT_EQ(read("sys/class/hwmon/hwmon2/power1_input"), "18000000\n");
  EXPECT_EQ(read("sys/class/hwmon/hwmon2/temp1_emergency"), "(no file)");
  EXPECT_TRUE(has("sys/class/kfd/kfd/topology/nodes/1/gpu_id"));
}

TEST_F(Tree, UnboundCardHasNothingOfItsDriver) {
  Card card = idle_card(rx7900xtx(), 0);
  card.state.driver_bound = false;
  write({card});
  const fs::path gpu = "sys/bus/pci/devices/0000:03:00.0";
  EXPECT_EQ(read(gpu / "vendor"), "0x1002\n");
  EXPECT_EQ(read(gpu / "uevent").find("DRIVER"), std::string::npos);
  EXPECT_FALSE(has(gpu / "driver"));
  EXPECT_FALSE(has(gpu / "hwmon"));
  EXPECT_FALSE(has(gpu / "drm"));
  EXPECT_FALSE(has(gpu / "gpu_metrics"));
  EXPECT_FALSE(has("sys/class/kfd/kfd/topology/nodes/1"));
}

TEST_F(Tree, SixtyFourCardsHaveAddressesOfTheirOwn) {
  write(healthy_machine(64));
  unsigned cards = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "sys/bus/pci/drivers/amdgpu"))
    if (entry.path().filename() != "module") ++cards;
  EXPECT_EQ(cards, 64U);
  EXPECT_EQ(read("sys/class/kfd/kfd/topology/nodes/64/properties").find("location_id 49152\n") != std::string::npos,
            true);
  EXPECT_TRUE(dangling_links().empty());
}

TEST_F(Tree, ProcNamesTheBootAndTheKernel) {
  write({});
  const Result<std::string> boot = read_boot_id(root_.string());
  ASSERT_TRUE(boot) << boot.error().text;
  EXPECT_EQ(*boot, "5ee05ee0-0000-4000-8000-000000000001");
  EXPECT_EQ(read("proc/sys/kernel/osrelease"), "6.12.48+deb13-amd64\n");
}

TEST_F(Tree, UnknownFunctionIsAnErrorThatNamesIt) {
  write({});
  const Result<void> result = set(root_, {0, 9, 0, 0}, "vendor", "0x1002");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::NotFound);
  EXPECT_NE(result.error().text.find("0000:09:00.0"), std::string::npos);
}

TEST_F(Tree, InstinctCardsCountMemoryErrors) {
  Card card = idle_card(mi210(), 0);
  card.state.ras = {{"umc", 1, 12, 3}};
  write({card});
  EXPECT_EQ(read("sys/class/drm/card0/device/ras/umc_err_count"), "ue: 1\nce: 12\nde: 3\n");
  EXPECT_EQ(read("sys/class/drm/card0/device/ras/gfx_err_count"), "ue: 0\nce: 0\n");
}

TEST(Noise, IsTheSameForTheSameSeedAndKeepsTheFault) {
  const std::vector<Card> cards = demo_machine();
  for (unsigned second = 1; second < 600; ++second) {
    const Card hot = with_noise(cards[1], 1, second);
    EXPECT_EQ(hot.state.junction_c, with_noise(cards[1], 1, second).state.junction_c);
    EXPECT_GE(hot.state.junction_c, 110.0);
    EXPECT_LT(hot.state.junction_c, 115.0);
    EXPECT_GE(hot.state.busy_percent, 90U);
    EXPECT_LE(with_noise(cards[0], 1, second).state.junction_c, 50.0);
    EXPECT_EQ(with_noise(cards[2], 1, second).state.link.width, 4U);
  }
  EXPECT_NE(with_noise(cards[1], 1, 1).state.junction_c, with_noise(cards[1], 2, 1).state.junction_c);
}

}  // namespace
}  // namespace gpuhealth::sim
