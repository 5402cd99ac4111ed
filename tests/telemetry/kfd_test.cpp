// SPDX-License-Identifier: Apache-2.0
#include "telemetry/kfd.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "telemetry/discovery.hpp"
#include "tests/support/captures.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;

PciAddress at(const char* text) {
  return *parse_pci_address(text);
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(KfdNode, IsReadByKeyWhateverItsOrder) {
  const auto node = parse_kfd_node(
      "unique_id 18446744073709551615\nsimd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id 58630\n"
      "domain 1\ndrm_render_minor 190\nhive_id 15188982192727901047\nsomething_new 7\nvendor_id 4098\ndevice_id "
      "29857\n");
  ASSERT_TRUE(node);
  EXPECT_TRUE(node->is_gpu());
  EXPECT_EQ(node->unique_id, 18446744073709551615ULL);
  EXPECT_EQ(node->hive_id, 15188982192727901047ULL);
  EXPECT_EQ(node->render_minor, 190);
  EXPECT_EQ(to_string(kfd_address(*node)), "0001:e5:00.6");
}

TEST(KfdNode, OfAProcessorIsNoGpuAndHasNoRenderNode) {
  const auto node = parse_kfd_node("cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\nlocation_id 0\n");
  ASSERT_TRUE(node);
  EXPECT_FALSE(node->is_gpu());
  EXPECT_EQ(node->render_minor, -1);
}

TEST(KfdNode, TextOfAnotherFormIsNone) {
  EXPECT_FALSE(parse_kfd_node(""));
  EXPECT_FALSE(parse_kfd_node("simd_count\nsimd_count many\n"));
  EXPECT_FALSE(parse_kfd_link("type 11\nnode_from 2\n"));
}

// gfx90a has its step in hexadecimal, which tools print as gfx9010 (captures/README.md, trap 13).
TEST(GfxName, HasItsStepInHexadecimal) {
  EXPECT_EQ(gfx_name(90010), "gfx90a");
  EXPECT_EQ(gfx_name(90402), "gfx942");
  EXPECT_EQ(gfx_name(90500), "gfx950");
  EXPECT_EQ(gfx_name(100300), "gfx1030");
  EXPECT_EQ(gfx_name(110000), "gfx1100");
  EXPECT_EQ(gfx_name(120001), "gfx1201");
  EXPECT_EQ(gfx_name(80003), "gfx803");
  EXPECT_EQ(gfx_name(0), "");
  EXPECT_EQ(gfx_name(99999), "");
}

TEST(KfdCards, NewerKernelsHaveThePartitionInTheTopBits) {
  KfdNode first, second;
  first.simd_count = second.simd_count = 152;
  first.node = 1, second.node = 2;
  first.location_id = 0x0500, second.location_id = 0x10000500;
  const auto cards = kfd_cards({second, first});
  ASSERT_EQ(cards.size(), 1u);
  ASSERT_EQ(cards[0].nodes.size(), 2u);
  EXPECT_EQ(cards[0].nodes[0].node, 1u);
  EXPECT_EQ(cards[0].nodes[1].partition, 1u);
}

TEST(KfdCards, AVirtualFunctionIsACardOfItsOwn) {
  KfdNode a, b;
  a.simd_count = b.simd_count = 304;
  a.node = 1, b.node = 2;
  a.location_id = 0x0510, b.location_id = 0x0511;  // 05:02.0 and 05:02.1
  EXPECT_EQ(kfd_cards({a, b}, {at("05:02.0"), at("05:02.1")}).size(), 2u);
  EXPECT_EQ(kfd_cards({a, b}, {at("05:02.0")}).size(), 1u);
}

class KfdCaptures : public ::testing::Test {
 protected:
  void SetUp() override {
    CAPTURES_OR_RETURN(dir);
    captures_ = dir / "kfd";
  }
  fs::path captures_;
  test::TempDir root_;
};

TEST_F(KfdCaptures, EightMi210InTwoHivesOfFour) {
  const auto nodes = read_kfd_topology((captures_ / "k8sdp-mi210-xgmi-pcie").string());
  ASSERT_EQ(nodes.size(), 10u);
  const auto cards = kfd_cards(nodes);
  ASSERT_EQ(cards.size(), 8u);
  // By address: 03, 26, 43 and 63 are one hive; 83, a3, c3 and e3 the other.
  const std::vector<PciAddress> first = {at("03:00.0"), at("26:00.0"), at("43:00.0"), at("63:00.0")};
  const std::vector<PciAddress> second = {at("83:00.0"), at("a3:00.0"), at("c3:00.0"), at("e3:00.0")};
  for (std::size_t i = 0; i < 8; ++i) {
    auto hive = i < 4 ? first : second;
    EXPECT_EQ(cards[i].pci, hive[i % 4]);
    EXPECT_EQ(cards[i].hive_id, i < 4 ? 12609507387757274807ULL : 18091350218769748594ULL);
    EXPECT_EQ(cards[i].device_id, 0x740fu);
    std::erase(hive, cards[i].pci);
    EXPECT_EQ(cards[i].xgmi_peers, hive);
    ASSERT_EQ(cards[i].nodes.size(), 1u);
    EXPECT_EQ(cards[i].nodes[0].gfx, "gfx90a");
    EXPECT_EQ(cards[i].nodes[0].compute_units, 104u);
  }
  EXPECT_EQ(cards[0].nodes[0].render_minor, 130);
  EXPECT_EQ(cards[0].unique_id, 10645161697164847644ULL);
}

TEST_F(KfdCaptures, EightMi300xInCpxModeAreEightCards) {
  const auto command = "tar xzf '" + (captures_ / "k8sdp-mi300x-cpx/tree.tar.gz").string() + "' -C " + root_.string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto nodes = read_kfd_topology(root_.string());
  ASSERT_EQ(nodes.size(), 65u);
  const auto cards = kfd_cards(nodes);
  ASSERT_EQ(cards.size(), 8u);
  for (const auto& card : cards) {
    EXPECT_EQ(card.nodes.size(), card.pci == at("e5:00.0") ? 7u : 8u);
    EXPECT_EQ(card.xgmi_peers.size(), 7u);
    EXPECT_EQ(card.hive_id, 15188982192727901047ULL);
    EXPECT_EQ(card.nodes[3].gfx, "gfx942");
    EXPECT_EQ(card.nodes[3].partition, 3u);
    EXPECT_EQ(card.nodes[3].compute_units, 38u);
  }
  EXPECT_EQ(cards[0].pci, at("05:00.0"));
  EXPECT_EQ(cards[0].unique_id, 16404946649897475633ULL);
  EXPECT_EQ(cards[0].nodes[7].render_minor, 135);
}

// Telemetry is on the PCI function alone; the nodes of all partitions belong to it.
TEST(ComputeNodes, OfAPartitionedCardBelongToItsFunction) {
  test::TempDir root;
  const auto device = root.path() / "sys/bus/pci/devices/0000:05:00.0";
  write(device / "vendor", "0x1002\n");
  write(device / "device", "0x74a1\n");
  write(device / "class", "0x120000\n");
  write(device / "current_compute_partition", "DPX\n");
  write(device / "current_memory_partition", "NPS1\n");
  const auto topology = root.path() / "sys/class/kfd/kfd/topology/nodes";
  for (int i = 0; i < 2; ++i) {
    write(topology / std::to_string(i + 1) / "gpu_id", std::to_string(4711 + i) + "\n");
    write(topology / std::to_string(i + 1) / "properties",
          "simd_count 608\nsimd_per_cu 4\ngfx_target_version 90402\nlocation_id " + std::to_string(0x500 + i) +
              "\ndrm_render_minor " + std::to_string(128 + i) + "\n");
  }
  const auto found = discover(root.string(), NameTable::load());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->devices.size(), 1u);
  const auto& gpu = found->devices[0];
  EXPECT_EQ(gpu.compute_partition, "DPX");
  EXPECT_EQ(gpu.memory_partition, "NPS1");
  EXPECT_EQ(gpu.compute_nodes,
            (std::vector<ComputeNode>{{1, 4711, 0, "gfx942", 128, 152}, {2, 4712, 1, "gfx942", 129, 152}}));
}

}  // namespace
}  // namespace gpuhealth::telemetry
