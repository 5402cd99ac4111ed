// SPDX-License-Identifier: Apache-2.0
#include "telemetry/ras.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/sampler.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

TEST(BadPages, AreCountedByTheirFlag) {
  const auto pages = parse_bad_pages(
      "0x00000001 : 0x00001000 : R\n0x0000abcd : 0x00001000 : P\n0x0000abce : 0x00001000 : F\n0x123456789a : "
      "0x00001000 : R\n");
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->retired, 2U);
  EXPECT_EQ(pages->pending, 1U);
  EXPECT_EQ(pages->failed, 1U);
  EXPECT_EQ(pages->total(), 4U);
}

TEST(BadPages, AnEmptyListIsNone) {
  EXPECT_EQ(parse_bad_pages("")->total(), 0U);
  EXPECT_EQ(parse_bad_pages(std::string(4096, '\0'))->total(), 0U);
}

TEST(BadPages, ALineThatIsCutOffIsNotCounted) {
  EXPECT_EQ(parse_bad_pages("0x00000001 : 0x00001000 : R\n0x0000abcd : 0x0000")->total(), 1U);
}

TEST(BadPages, OtherTextIsNoList) {
  EXPECT_FALSE(parse_bad_pages("Query currently inaccessible\n"));
  EXPECT_FALSE(parse_bad_pages("0x1\n"));
}

TEST(RasEvents, TheFileOfLinux612) {
  const auto events = parse_ras_events(
      "current seqno: 7\nFatal Error: count:1, last_seqno:5\nPoison Creation: count:2, last_seqno:6\nPoison "
      "Consumption: "
      "count:3, last_seqno:7\n");
  ASSERT_TRUE(events);
  EXPECT_EQ(events->sequence, 7U);
  EXPECT_EQ(events->fatal, 1U);
  EXPECT_EQ(events->poison_created, 2U);
  EXPECT_EQ(events->poison_consumed, 3U);
  EXPECT_FALSE(parse_ras_events("nothing"));
}

class RasSampling : public ::testing::Test {
 protected:
  void SetUp() override {
    const sim::MachineFacts facts;
    ASSERT_TRUE(sim::write_machine(root_.path(), std::span(&card_, 1), facts));
  }
  void set(const std::string& file, const std::string& value) {
    ASSERT_TRUE(sim::set(root_.path(), card_.place.gpu, file, value)) << file;
  }
  void look() {
    if (!sampler_) {
      const auto info = identify(root_.string(), card_.place.gpu, NameTable::load());
      ASSERT_TRUE(info) << info.error().text;
      sampler_.emplace(root_.string(), *info);
    }
    sampler_->sample(true, {1'000'000'000}, sample_);
  }
  [[nodiscard]] std::optional<double> count(std::string_view name) const {
    const auto* row = find_reading(name);
    return row == nullptr ? std::nullopt : sample_.value(row->id);
  }
  [[nodiscard]] const Reading* reading(std::string_view name) const { return sample_.find(find_reading(name)->id); }

  gpuhealth::test::TempDir root_;
  sim::Card card_ = sim::idle_card(sim::mi210(), 0);
  std::optional<Sampler> sampler_;
  Sample sample_;
};

TEST_F(RasSampling, TwoLinesOfOldKernelsAndThreeOfNewOnes) {
  set("ras/gfx_err_count", "ue: 1\nce: 2\n");
  set("ras/umc_err_count", "ue: 3\nce: 4\nde: 5\n");
  look();
  EXPECT_EQ(count("ras.gfx.uncorrectable"), 1);
  EXPECT_EQ(count("ras.gfx.correctable"), 2);
  EXPECT_EQ(reading("ras.gfx.deferred"), nullptr);
  EXPECT_EQ(count("ras.umc.uncorrectable"), 3);
  EXPECT_EQ(count("ras.umc.correctable"), 4);
  EXPECT_EQ(count("ras.umc.deferred"), 5);
}

TEST_F(RasSampling, AcaFilesAreReadWhereTheCountersAreNot) {
  std::filesystem::remove(sim::function_dir(root_.path(), card_.place.gpu).value() / "ras/umc_err_count");
  set("ras/aca_umc", "ue: 0\nce: 9\nde: 1\n");
  look();
  EXPECT_EQ(count("ras.umc.correctable"), 9);
  EXPECT_EQ(count("ras.umc.deferred"), 1);
}

TEST_F(RasSampling, InaccessibleIsNoCountAndNoFault) {
  set("ras/umc_err_count", "Query currently inaccessible\n");
  look();
  ASSERT_NE(reading("ras.umc.correctable"), nullptr);
  EXPECT_EQ(reading("ras.umc.correctable")->status, ReadingStatus::Unreadable);
  EXPECT_EQ(reading("ras.umc.correctable")->sys_errno, EAGAIN);
}

TEST_F(RasSampling, Trap01CountsOfASleepingGpuAreNotBelieved) {
  set("ras/umc_err_count", "ue: 0\nce: 3145683\nde: 0\n");  // three queries while it slept, and three true ones
  look();
  EXPECT_EQ(reading("ras.umc.correctable")->status, ReadingStatus::Implausible);
  EXPECT_EQ(count("ras.umc.uncorrectable"), 0);
}

TEST_F(RasSampling, CountersAreReadAgainWhenTheEventsNumberMoves) {
  look();
  EXPECT_EQ(count("ras.umc.uncorrectable"), 0);
  set("ras/umc_err_count", "ue: 1\nce: 0\nde: 0\n");
  look();
  EXPECT_EQ(count("ras.umc.uncorrectable"), 0) << "the hardware was queried although nothing had happened";
  set("ras/event_state", "current seqno: 1\nFatal Error: count:1, last_seqno:1\n");
  look();
  EXPECT_EQ(count("ras.umc.uncorrectable"), 1);
}

TEST_F(RasSampling, CorrectedErrorsAreFoundWithoutAnEvent) {
  look();
  set("ras/umc_err_count", "ue: 0\nce: 5\nde: 0\n");
  for (int i = 0; i < 8; ++i) look();
  EXPECT_EQ(count("ras.umc.correctable"), 5);
}

TEST_F(RasSampling, ABadPageListLongerThanAPageOfMemoryIsCountedWhole) {
  std::string list;
  for (int i = 0; i < 700; ++i) list += "0x0000abcd : 0x00001000 : R\n";  // 19 600 bytes
  set("ras/gpu_vram_bad_pages", list);
  look();
  EXPECT_EQ(count("vram.bad_pages"), 700);
}

TEST_F(RasSampling, NoBadPageIsZero) {
  look();
  EXPECT_EQ(count("vram.bad_pages"), 0);
}

}  // namespace
}  // namespace gpuhealth::telemetry
