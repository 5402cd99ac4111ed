// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "telemetry/discovery.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

using namespace std::chrono_literals;

class SamplerTest : public ::testing::Test {
 protected:
  void plug(const sim::Card& card, const std::string& kernel = "6.12.48") {
    card_ = card;
    sim::MachineFacts facts;
    facts.kernel_release = kernel;
    ASSERT_TRUE(sim::write_machine(root_.path(), std::span(&card_, 1), facts));
  }
  void open() {
    const auto info = identify(root_.string(), card_.place.gpu, NameTable::load());
    ASSERT_TRUE(info) << info.error().text;
    sampler_.emplace(root_.string(), *info);
  }
  const Sample& look(bool slow = true) {
    if (!sampler_) open();
    sampler_->sample(slow, now_, sample_);
    return sample_;
  }
  void set(const std::string& file, const std::string& value) {
    ASSERT_TRUE(sim::set(root_.path(), card_.place.gpu, file, value)) << file;
  }
  ReadingStatus status(ReadingId id) {
    const auto* r = sample_.find(id);
    return r == nullptr ? ReadingStatus::Unsupported : r->status;
  }

  test::TempDir root_;
  sim::Card card_;
  std::optional<Sampler> sampler_;
  Sample sample_;
  SteadyTime now_{1'000'000'000};
};

TEST_F(SamplerTest, ALoadedCardSaysEverything) {
  auto card = sim::loaded_card(sim::rx7900xtx(), 0);
  card.state.edge_c = 61;
  card.state.junction_c = 78;
  card.state.memory_c = 80;
  card.state.power_w = 288;
  card.state.busy_percent = 97;
  plug(card);
  look();
  EXPECT_EQ(sample_.power, PowerState::Active);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 61);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureJunction), 78);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureJunctionCritical), 110);
  EXPECT_EQ(sample_.value(ReadingId::PowerAverage), 288);
  EXPECT_EQ(sample_.value(ReadingId::UtilizationGfx), 97);
  EXPECT_EQ(sample_.performance_level, "auto");
}

TEST_F(SamplerTest, SensorsAreFoundByLabelNotByNumber) {
  plug(sim::idle_card(sim::rx6900xt(), 0));
  set("hwmon/temp1_label", "junction");
  set("hwmon/temp2_label", "edge");
  set("hwmon/temp1_input", "91000");
  set("hwmon/temp2_input", "70000");
  look();
  EXPECT_EQ(sample_.value(ReadingId::TemperatureJunction), 91);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 70);
}

TEST_F(SamplerTest, ValuesOfTheNextSampleAreNew) {
  plug(sim::loaded_card(sim::rx6900xt(), 0));
  look();
  set("hwmon/temp1_input", "66000");
  look(false);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 66);
}

TEST_F(SamplerTest, AFastSampleRepeatsTheLimitsOfTheSlowOne) {
  plug(sim::loaded_card(sim::rx6900xt(), 0));
  look(true);
  const auto cap = sample_.value(ReadingId::PowerCap);
  set("hwmon/power1_cap", "111000000");
  look(false);
  EXPECT_EQ(sample_.value(ReadingId::PowerCap), cap);
  look(true);
  EXPECT_EQ(sample_.value(ReadingId::PowerCap), 111);
}

TEST_F(SamplerTest, TheLinkIsTheSlotsAndNotTheOneOnTheCard) {
  auto card = sim::loaded_card(sim::rx7900xtx(), 0);
  card.state.link = {2.5, 4};
  plug(card);
  look();
  EXPECT_EQ(sample_.value(ReadingId::PcieSpeed), 2.5);
  EXPECT_EQ(sample_.value(ReadingId::PcieWidth), 4);
  EXPECT_EQ(sample_.value(ReadingId::PcieSpeedMax), 16);
  EXPECT_EQ(sample_.value(ReadingId::PcieWidthMax), 16);
  EXPECT_EQ(sampler_->sources().at("pcie.width"), "../(0000:01:00.0)/current_link_width");
}

TEST_F(SamplerTest, WhatTheSlotCannotDoIsNotExpectedOfTheCard) {
  auto card = sim::loaded_card(sim::rx7900xtx(), 0);
  card.state.slot_max = {8, 8};
  card.state.link = {8, 8};
  plug(card);
  look();
  EXPECT_EQ(sample_.value(ReadingId::PcieSpeedMax), 8);
  EXPECT_EQ(sample_.value(ReadingId::PcieWidthMax), 8);
}

TEST_F(SamplerTest, AnAllOnesLinkIsImplausible) {
  plug(sim::idle_card(sim::rx580(), 0));
  set("current_link_speed", "Unknown");
  set("current_link_width", "63");
  look();
  EXPECT_EQ(status(ReadingId::PcieSpeed), ReadingStatus::Implausible);
  EXPECT_EQ(status(ReadingId::PcieWidth), ReadingStatus::Implausible);
}

TEST_F(SamplerTest, ErrorsOfTheLinkAreSummedOverCardSwitchAndSlot) {
  auto card = sim::idle_card(sim::rx7900xtx(), 0);
  card.state.aer.bad_tlp = 2;
  card.state.slot_aer.receiver_errors = 5;
  plug(card);
  look();
  EXPECT_EQ(sample_.value(ReadingId::AerCorrectable), 7);
}

TEST_F(SamplerTest, ASleepingGpuIsAsleepAndOnlySafeFilesAreRead) {
  plug(sim::idle_card(sim::rx6900xt(), 0));
  open();
  set("power/runtime_status", "suspended");
  look();
  EXPECT_EQ(sample_.power, PowerState::Suspended);
  EXPECT_EQ(status(ReadingId::TemperatureEdge), ReadingStatus::Asleep);
  EXPECT_EQ(status(ReadingId::PowerAverage), ReadingStatus::Asleep);
  EXPECT_EQ(status(ReadingId::PcieSpeed), ReadingStatus::Asleep);
  EXPECT_TRUE(sample_.value(ReadingId::VramUsed)) << "software state, which never wakes the GPU";
  EXPECT_TRUE(sample_.value(ReadingId::TemperatureEdgeCritical));
  EXPECT_TRUE(sampler_->metrics().empty());
}

TEST_F(SamplerTest, AMissingRuntimeStatusIsNotSleep) {
  plug(sim::idle_card(sim::rx580(), 0));
  std::filesystem::remove(device_dir(root_.string(), card_.place.gpu) + "/power/runtime_status");
  look();
  EXPECT_EQ(sample_.power, PowerState::Active);
  EXPECT_TRUE(sample_.value(ReadingId::TemperatureEdge));
}

TEST_F(SamplerTest, AnIdleGpuThatMaySleepIsLeftAloneForItsTimer) {
  auto card = sim::idle_card(sim::rx6900xt(), 0);
  card.state.busy_percent = 0;
  plug(card, "6.12.48");
  set("power/control", "auto");
  set("power/autosuspend_delay_ms", "5000");
  look();
  set("hwmon/temp1_input", "77000");
  now_ = now_ + 2s;
  look(false);
  EXPECT_NE(sample_.value(ReadingId::TemperatureEdge), 77) << "a read now would keep it awake";
  now_ = now_ + 6s;
  look(false);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 77);
}

TEST_F(SamplerTest, ABusyGpuIsReadEveryTime) {
  auto card = sim::loaded_card(sim::rx6900xt(), 0);
  plug(card, "6.12.48");
  set("power/control", "auto");
  set("power/autosuspend_delay_ms", "5000");
  look();
  set("hwmon/temp1_input", "77000");
  now_ = now_ + 2s;
  look(false);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 77);
}

TEST_F(SamplerTest, KernelsThatDoNotWakeOnReadsNeedNoPause) {
  auto card = sim::idle_card(sim::rx6900xt(), 0);
  card.state.busy_percent = 0;
  plug(card, "6.14.2");
  set("power/control", "auto");
  set("power/autosuspend_delay_ms", "5000");
  look();
  set("hwmon/temp1_input", "77000");
  now_ = now_ + 2s;
  look(false);
  EXPECT_EQ(sample_.value(ReadingId::TemperatureEdge), 77);
}

TEST_F(SamplerTest, HotspotBitOfNavi31IsSetAlwaysAndBelievedOnlyNearTheLimit) {
  auto card = sim::idle_card(sim::rx7900xtx(), 0);
  card.state.junction_c = 60;
  plug(card);
  look();
  EXPECT_TRUE(sample_.throttle_known);
  EXPECT_TRUE(sample_.throttle.empty());
  EXPECT_TRUE(sample_.throttle_gated.contains(ThrottleReason::TempHotspot));
  card.state.junction_c = 110;
  ASSERT_TRUE(sim::update_card(root_.path(), card));
  look();
  EXPECT_TRUE(sample_.throttle.contains(ThrottleReason::TempHotspot));
}

TEST_F(SamplerTest, SentinelsAreNoValues) {
  plug(sim::idle_card(sim::rx580(), 0));
  set("hwmon/temp1_input", "511000");
  set("gpu_busy_percent", "4294967295");
  set("pcie_replay_count", "8589934590");
  look();
  EXPECT_EQ(status(ReadingId::TemperatureEdge), ReadingStatus::Implausible);
  EXPECT_EQ(status(ReadingId::UtilizationGfx), ReadingStatus::Implausible);
  EXPECT_EQ(status(ReadingId::PcieReplays), ReadingStatus::Implausible);
}

TEST_F(SamplerTest, AnEmptyPowerCapIsAFailedQueryAndLaterADeadSmu) {
  plug(sim::idle_card(sim::rx580(), 0));
  set("hwmon/power1_cap", "");
  look();
  EXPECT_EQ(status(ReadingId::PowerCap), ReadingStatus::Unreadable);
  set("hwmon/power1_cap", "155000000");
  look();
  EXPECT_EQ(sample_.value(ReadingId::PowerCap), 155);
  set("hwmon/power1_cap", "");
  look();
  EXPECT_EQ(status(ReadingId::PowerCap), ReadingStatus::SmuDead);
}

TEST_F(SamplerTest, MoreMemoryUsedThanThereIsIsImplausible) {
  plug(sim::idle_card(sim::rx580(), 0));
  set("mem_info_vram_total", "1000");
  set("mem_info_vram_used", "2000");
  look();
  EXPECT_EQ(status(ReadingId::VramUsed), ReadingStatus::Implausible);
}

TEST_F(SamplerTest, RasCountersOfAServerCardAreRead) {
  auto card = sim::idle_card(sim::mi210(), 0);
  card.state.ras = {{"umc", 1, 14, 2}, {"gfx", 0, 3, {}}};
  plug(card);
  look();
  EXPECT_EQ(sample_.value(ras_reading(0, RasKind::Correctable)), 14);
  EXPECT_EQ(sample_.value(ras_reading(0, RasKind::Uncorrectable)), 1);
  EXPECT_EQ(sample_.value(ras_reading(0, RasKind::Deferred)), 2);
  EXPECT_EQ(sample_.value(ras_reading(2, RasKind::Correctable)), 3);
  EXPECT_EQ(sample_.find(ras_reading(2, RasKind::Deferred)), nullptr);
}

TEST_F(SamplerTest, ReadingsAreSortedAndUnique) {
  plug(sim::loaded_card(sim::mi300x(), 0));
  look();
  for (std::size_t i = 1; i < sample_.readings.size(); ++i)
    EXPECT_LT(sample_.readings[i - 1].id, sample_.readings[i].id);
}

TEST_F(SamplerTest, EveryModelOfTheSimulatorGivesOnlyPlausibleValues) {
  for (const auto& model : {sim::rx580(), sim::rx6900xt(), sim::rx7900xtx(), sim::rx9070(), sim::phoenix_apu(),
                            sim::mi210(), sim::mi300x()}) {
    plug(sim::loaded_card(model, 0));
    sampler_.reset();
    look();
    for (const auto& r : sample_.readings)
      EXPECT_EQ(r.status, ReadingStatus::Valid) << model.name << ' ' << find_reading(r.id)->name;
    EXPECT_GT(sample_.readings.size(), 15u) << model.name;
  }
}

TEST_F(SamplerTest, ProgressNamesTheFileAndThenNone) {
  plug(sim::idle_card(sim::rx580(), 0));
  Progress progress;
  const auto info = identify(root_.string(), card_.place.gpu, NameTable::load());
  ASSERT_TRUE(info);
  sampler_.emplace(root_.string(), *info, &progress);
  look();
  EXPECT_EQ(progress.device.load(), Progress::kNoDevice);
  EXPECT_GT(progress.step.load(), 20u);
  progress.at(pack(card_.place.gpu), "hwmon/hwmon0/temp1_input");
  EXPECT_EQ(progress.file(), "hwmon/hwmon0/temp1_input");
  EXPECT_EQ(unpack(progress.device.load()), card_.place.gpu);
}

}  // namespace
}  // namespace gpuhealth::telemetry
