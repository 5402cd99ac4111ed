// SPDX-License-Identifier: Apache-2.0
#include "exporter/canary_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "exporter/output.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::exporter {
namespace {

namespace fs = std::filesystem;

std::string run(int minute, double value, const char* kernel = "6.12.1") {
  return R"({"canary":"triad","metric":"bandwidth","unit":"GB/s","better":"higher","status":"ok","gate":"strong",)"
         R"("device":"0000:03:00.0","epoch":")" +
         std::string(kernel) + R"(","time":)" + std::to_string(1'764'500'000 + minute * 60) + R"(,"value":)" +
         std::to_string(value) + "}\n";
}

class CanaryFileTest : public testing::Test {
 protected:
  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
  test::TempDir folder;
  std::string path = folder.string() + "/results.jsonl";
};

TEST_F(CanaryFileTest, AFileThatIsNotThereIsNotReadable) {
  EXPECT_FALSE(CanaryFile(path).look().readable);
}

TEST_F(CanaryFileTest, TheRatioSaysHowManyTimesSlowerThanItsBaseline) {
  for (int i = 0; i < 60; ++i) append(run(i, 800 + i % 3));
  CanaryFile file(path);
  EXPECT_TRUE(file.look().readable);
  append(run(60, 400));
  const auto& seen = file.look();
  ASSERT_EQ(seen.last.size(), 1U);
  ASSERT_TRUE(seen.last[0].ratio);
  EXPECT_NEAR(*seen.last[0].ratio, 2.0, 0.02);
  EXPECT_DOUBLE_EQ(seen.last[0].time, 1'764'503'600);
}

TEST_F(CanaryFileTest, ALineThatIsWrittenInTwoPiecesIsReadOnce) {
  const auto line = run(0, 800);
  append(line.substr(0, 40));
  CanaryFile file(path);
  EXPECT_TRUE(file.look().last.empty());
  append(line.substr(40));
  EXPECT_EQ(file.look().last.size(), 1U);
}

TEST_F(CanaryFileTest, WhatWasLearntOutlivesANewFile) {
  for (int i = 0; i < 60; ++i) append(run(i, 800));
  CanaryFile file(path);
  file.look();
  fs::rename(path, path + ".1");
  append(run(61, 400));
  const auto& seen = file.look();
  ASSERT_EQ(seen.last.size(), 1U);
  ASSERT_TRUE(seen.last[0].ratio);
  EXPECT_NEAR(*seen.last[0].ratio, 2.0, 0.02);
}

TEST_F(CanaryFileTest, GarbageIsPassedOver) {
  append("nonsense\n{\"canary\": 7}\n\n" + std::string(2 << 20, 'x') + "\n" + run(0, 800) + "{\"reset\": true}\n");
  EXPECT_EQ(CanaryFile(path).look().last.size(), 1U);
}

TEST_F(CanaryFileTest, AFolderInItsPlaceIsNotReadable) {
  fs::create_directory(path);
  EXPECT_FALSE(CanaryFile(path).look().readable);
}

TEST_F(CanaryFileTest, ATextfileIsReplacedAsAWhole) {
  const std::string prom = folder.string() + "/gpu.prom";
  ASSERT_TRUE(write_textfile(prom, "a 1\n"));
  struct stat before{};
  stat(prom.c_str(), &before);
  std::ifstream held(prom);  // who reads the old one goes on reading it
  ASSERT_TRUE(write_textfile(prom, "b 2\n"));
  struct stat after{};
  stat(prom.c_str(), &after);
  EXPECT_NE(before.st_ino, after.st_ino);
  EXPECT_EQ(after.st_mode & 0777U, 0644U);
  std::string line;
  std::getline(held, line);
  EXPECT_EQ(line, "a 1");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST_F(CanaryFileTest, ATextfileThatCannotBeWrittenSaysWhichAndWhy) {
  const auto written = write_textfile("/proc/nowhere/gpu.prom", "a 1\n");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text.find("/proc/nowhere/gpu.prom"), std::string::npos);
}

}  // namespace
}  // namespace gpuhealth::exporter
