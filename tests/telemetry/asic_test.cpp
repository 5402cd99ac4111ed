// SPDX-License-Identifier: Apache-2.0
#include "telemetry/asic.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace gpuhealth::telemetry {
namespace {

using Names = std::vector<std::string>;

// A file with this text, gone with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    close(fd);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "amdgpu-ids-XXXXXX";
};

NameTable own_rows_only() {
  return NameTable::load("/nonexistent/amdgpu.ids");
}

TEST(Asic, OnePartOfEachFamily) {
  const struct {
    std::uint16_t id;
    AsicFamily family;
    const char* chip;
    const char* gfx;
  } rows[] = {
      {0x6798, AsicFamily::SouthernIslands, "Tahiti", "gfx600"},
      {0x6617, AsicFamily::SouthernIslands, "Oland", "gfx602"},
      {0x67B0, AsicFamily::SeaIslands, "Hawaii", "gfx701"},
      {0x130F, AsicFamily::SeaIslands, "Kaveri", "gfx700"},
      {0x67DF, AsicFamily::VolcanicIslands, "Polaris 10", "gfx803"},
      {0x98E4, AsicFamily::VolcanicIslands, "Stoney", "gfx810"},
      {0x687F, AsicFamily::Vega10, "Vega 10", "gfx900"},
      {0x69AF, AsicFamily::Vega12, "Vega 12", "gfx904"},
      {0x66AF, AsicFamily::Vega20, "Vega 20", "gfx906"},
      {0x738C, AsicFamily::Arcturus, "MI100", "gfx908"},
      {0x740F, AsicFamily::Aldebaran, "MI200", "gfx90a"},
      {0x74A1, AsicFamily::Mi300, "MI300", "gfx942"},
      {0x75A3, AsicFamily::Mi350, "MI350", "gfx950"},
      {0x731F, AsicFamily::Navi1x, "Navi 10", "gfx1010"},
      {0x7340, AsicFamily::Navi1x, "Navi 14", "gfx1012"},
      {0x73BF, AsicFamily::Navi2x, "Navi 21", "gfx1030"},
      {0x73FF, AsicFamily::Navi2x, "Navi 23", "gfx1032"},
      {0x744C, AsicFamily::Navi3x, "Navi 31", "gfx1100"},
      {0x747E, AsicFamily::Navi3x, "Navi 32", "gfx1101"},
      {0x7480, AsicFamily::Navi3x, "Navi 33", "gfx1102"},
      {0x7550, AsicFamily::Navi4x, "Navi 48", "gfx1201"},
      {0x7590, AsicFamily::Navi4x, "Navi 44", "gfx1200"},
      {0x15D8, AsicFamily::ApuRaven, "Picasso", "gfx902"},
      {0x1636, AsicFamily::ApuRenoir, "Renoir", "gfx90c"},
      {0x163F, AsicFamily::ApuVangogh, "Van Gogh", "gfx1033"},
      {0x1681, AsicFamily::ApuRdna2, "Rembrandt", "gfx1035"},
      {0x15BF, AsicFamily::ApuRdna3, "Phoenix", "gfx1103"},
      {0x1586, AsicFamily::ApuRdna3, "Strix Halo", "gfx1151"},
      {0x1114, AsicFamily::ApuRdna3, "Krackan Point", "gfx1152"},
  };
  for (const auto& row : rows) {
    const auto info = find_asic(row.id);
    EXPECT_EQ(info.family, row.family) << row.chip;
    EXPECT_EQ(info.chip, row.chip);
    EXPECT_EQ(info.gfx, row.gfx) << row.chip;
  }
}

TEST(Asic, UnknownIdsAreUnknown) {
  for (const std::uint16_t id : std::initializer_list<std::uint16_t>{0x0000, 0x0001, 0x1478, 0xFFFF}) {
    EXPECT_EQ(find_asic(id).family, AsicFamily::Unknown) << id;
    EXPECT_TRUE(find_asic(id).chip.empty());
  }
}

TEST(Asic, NoIdBelongsToTwoChips) {
  std::set<int> seen;
#define CHIP(name, family, gfx, ...) \
  for (const int id : {__VA_ARGS__}) EXPECT_TRUE(seen.insert(id).second) << name << " " << id;
#include "telemetry/asic.def"
#undef CHIP
  EXPECT_GT(seen.size(), 350U);
}

TEST(Asic, EachOwnProductIsOfAKnownChipAndNamedOnce) {
  std::set<std::pair<int, int>> seen;
#define PRODUCT(name, device_id, ...)                                  \
  EXPECT_NE(find_asic(device_id).family, AsicFamily::Unknown) << name; \
  for (const int revision : {__VA_ARGS__})                             \
    EXPECT_TRUE(seen.insert({device_id, revision}).second) << name << " " << revision;
#include "telemetry/product_names.def"
#undef PRODUCT
}

TEST(ProductNames, RevisionDecidesBetweenTheProductsOfNavi31) {
  const auto names = own_rows_only();
  EXPECT_EQ(names.find(0x744C, 0xC8).name, "AMD Radeon RX 7900 XTX");
  EXPECT_EQ(names.find(0x744C, 0xCC).name, "AMD Radeon RX 7900 XT");
  EXPECT_EQ(names.find(0x744C, 0xCE).name, "AMD Radeon RX 7900 GRE");
  EXPECT_TRUE(names.find(0x744C, 0xC8).others.empty());
}

TEST(ProductNames, WithoutARevisionItIsOneOfSeveral) {
  const auto found = own_rows_only().find(0x744C, std::nullopt);
  EXPECT_EQ(found.name, "Navi 31 (one of 4 products)");
  EXPECT_EQ(found.others, (Names{"AMD Radeon RX 7900 XTX", "AMD Radeon RX 7900 XT", "AMD Radeon RX 7900 GRE",
                                 "AMD Radeon RX 7900M"}));
}

TEST(ProductNames, AnUnlistedRevisionIsOneOfSeveralToo) {
  const auto found = own_rows_only().find(0x7550, 0xEE);
  EXPECT_EQ(found.name, "Navi 48 (one of 3 products)");
  EXPECT_EQ(found.others, (Names{"AMD Radeon RX 9070 XT", "AMD Radeon RX 9070 GRE", "AMD Radeon RX 9070"}));
}

TEST(ProductNames, AnUnlistedRevisionOfASingleProductIsItsChip) {
  const auto found = own_rows_only().find(0x74A1, 0x99);
  EXPECT_EQ(found.name, "MI300");
  EXPECT_EQ(found.others, Names{"AMD Instinct MI300X"});
}

TEST(ProductNames, OneProductNeedsNoRevision) {
  EXPECT_EQ(own_rows_only().find(0x74A1, std::nullopt).name, "AMD Instinct MI300X");
  EXPECT_EQ(own_rows_only().find(0x15C8, std::nullopt).name, "AMD Radeon 740M Graphics");
}

TEST(ProductNames, CapturedPhoenixIsA780M) {
  EXPECT_EQ(own_rows_only().find(0x15BF, 0xDD).name, "AMD Radeon 780M Graphics");
}

TEST(ProductNames, PartWithoutARowIsItsChip) {
  EXPECT_EQ(own_rows_only().find(0x1636, 0xC6).name, "Renoir");
  EXPECT_EQ(own_rows_only().find(0x1111, std::nullopt).name, "");
}

TEST(ProductNames, LibdrmsTableComesFirst) {
  const TempFile file(
      "# comment\n1.0.0\n744C,\tC8,\tBoard of the distribution\n73FF,\tC1,\tAMD Radeon RX 6600 XT\n73FF,\tC7,\tAMD "
      "Radeon RX 6600\n");
  const auto names = NameTable::load(file.path());
  EXPECT_EQ(names.find(0x744C, 0xC8).name, "Board of the distribution");
  EXPECT_EQ(names.find(0x744C, 0xCC).name, "AMD Radeon RX 7900 XT");
  EXPECT_EQ(names.find(0x73FF, 0xC7).name, "AMD Radeon RX 6600");
  EXPECT_EQ(names.find(0x73FF, std::nullopt).name, "Navi 23 (one of 4 products)");
}

TEST(ProductNames, TheSameRowTwiceWithTwoNamesGivesCandidates) {
  const TempFile file(
      "743F,\tC3,\tAMD Radeon RX 6500\n743F,\tC3,\tAMD Radeon RX 6500M\n98E4,\tEB,\tSame\n98E4,\tEB,\tSame\n");
  const auto names = NameTable::load(file.path());
  EXPECT_EQ(names.find(0x743F, 0xC3).name, "Navi 24 (one of 2 products)");
  EXPECT_EQ(names.find(0x743F, 0xC3).others, (Names{"AMD Radeon RX 6500", "AMD Radeon RX 6500M"}));
  EXPECT_EQ(names.find(0x98E4, 0xEB).name, "Same");
}

TEST(ProductNames, DamagedTableLosesOnlyItsDamagedRows) {
  const std::string nul(1, '\0');
  const TempFile file(
      "\x01\xFF,,,\n12345,\tC1,\tid too long\n731F,\t1C1,\trevision too long\n731F\n731F,\tC1\nG31F,\tC1,\tx\n"
      "731F,\tC1,\t\n731F,\tC2,\tbell \x07\n731F,\tC3,\tnul " +
      nul + "\n731F,\tC4,\tAMD Radeon RX 5700\r\n" + "731F,\tC5,\t" + std::string(500, 'a') +
      "\n7340,\tC5,\tno newline at the end");
  const auto names = NameTable::load(file.path());
  EXPECT_EQ(names.find(0x731F, std::nullopt).name, "AMD Radeon RX 5700");
  EXPECT_EQ(names.find(0x7340, 0xC5).name, "no newline at the end");
  EXPECT_EQ(names.find(0x744C, 0xC8).name, "AMD Radeon RX 7900 XTX");
}

TEST(ProductNames, DirectoryInsteadOfATableLeavesOurRows) {
  EXPECT_EQ(NameTable::load("/").find(0x744C, 0xC8).name, "AMD Radeon RX 7900 XTX");
}

}  // namespace
}  // namespace gpuhealth::telemetry
