// SPDX-License-Identifier: Apache-2.0
#include "telemetry/quirks.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/paths.hpp"

namespace gpuhealth::telemetry {
namespace {

TEST(Quirks, EveryRowHasAFamilyWordsAndASource) {
  std::set<std::string_view> names;
  for (const auto& quirk : all_quirks()) {
    EXPECT_NE(quirk.families, 0U) << quirk.name;
    EXPECT_GT(quirk.what.size(), 10U) << quirk.name;
    EXPECT_GT(quirk.source.size(), 5U) << quirk.name;
    EXPECT_TRUE(names.insert(quirk.name).second) << quirk.name;
    EXPECT_EQ(find_quirk(quirk.id).name, quirk.name);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(QuirkId::Count));
}

TEST(Quirks, FamilyDecides) {
  EXPECT_TRUE(quirk_applies(QuirkId::TempHotspotAlwaysSet, AsicFamily::Navi3x));
  EXPECT_TRUE(quirk_applies(QuirkId::TempHotspotAlwaysSet, AsicFamily::Navi4x));
  EXPECT_FALSE(quirk_applies(QuirkId::TempHotspotAlwaysSet, AsicFamily::Navi2x));
  EXPECT_FALSE(quirk_applies(QuirkId::TempHotspotAlwaysSet, AsicFamily::Unknown));
  EXPECT_TRUE(quirk_applies(QuirkId::ReplayCountConstantZero, AsicFamily::Navi1x));
  EXPECT_FALSE(quirk_applies(QuirkId::ReplayCountConstantZero, AsicFamily::VolcanicIslands));
  EXPECT_FALSE(quirk_applies(QuirkId::ReplayCountConstantZero, AsicFamily::Arcturus));
  EXPECT_TRUE(quirk_applies(QuirkId::PcieBwBlocks, AsicFamily::Unknown));
}

TEST(Quirks, KernelRangeDecidesWhereThereIsOne) {
  const auto stuck = [](std::string_view release) {
    return quirk_applies(QuirkId::GfxclkStuck1200, AsicFamily::Navi3x, release);
  };
  EXPECT_FALSE(stuck("6.1.0-28-amd64"));
  EXPECT_TRUE(stuck("6.2.0"));
  EXPECT_TRUE(stuck("6.2.16-20-pve"));
  EXPECT_FALSE(stuck("6.3.1"));
  EXPECT_FALSE(stuck("6.12.57+deb13-amd64"));
  EXPECT_TRUE(quirk_applies(QuirkId::PowerAverageMissing, AsicFamily::VolcanicIslands, "7.0.3"));
  EXPECT_FALSE(quirk_applies(QuirkId::PowerAverageMissing, AsicFamily::VolcanicIslands, "5.10.0"));
  EXPECT_FALSE(quirk_applies(QuirkId::PowerAverageMissing, AsicFamily::Navi3x, "6.8.0"));
}

TEST(Quirks, KernelThatCannotBeReadCountsAsAffected) {
  for (const auto* release : {"", "next", "6", "6.", "v6.12"})
    EXPECT_TRUE(quirk_applies(QuirkId::GfxclkStuck1200, AsicFamily::Navi3x, release)) << release;
}

TEST(Quirks, ThePageListsEachRowAndNoOther) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/gpu-metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const auto& quirk : all_quirks()) {
    const auto row = "| " + std::string(quirk.name) + " |";
    const auto at = page.find(row);
    ASSERT_NE(at, std::string::npos) << quirk.name;
    const auto line = page.substr(at, page.find('\n', at) - at);
    EXPECT_NE(line.find("| " + std::string(quirk.what) + " |"), std::string::npos) << line;
    EXPECT_NE(line.find("| " + std::string(quirk.source) + " |"), std::string::npos) << line;
    EXPECT_NE(line.find("| " + (quirk.kernels.empty() ? "all" : "`" + std::string(quirk.kernels) + "`") + " |"),
              std::string::npos)
        << line;
    for (unsigned family = 0; family < 20 && quirk.families != ~0U; ++family) {
      const auto name = std::string(to_string(static_cast<AsicFamily>(family)));
      EXPECT_EQ(line.find(name) != std::string::npos && line.find(name) < line.find(quirk.what),
                (quirk.families >> family & 1) != 0)
          << quirk.name << " " << name;
    }
  }
  const auto table = page.substr(page.find("| quirk |"));
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = table.find("\n| ", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, all_quirks().size());
}

}  // namespace
}  // namespace gpuhealth::telemetry
