// SPDX-License-Identifier: Apache-2.0
// Programs that suffer, and their healthy neighbours.
#include <gtest/gtest.h>

#include <algorithm>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;
using C = ConditionType;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr std::uint64_t kMib = 1024 * 1024;

// A sample every 2 s, a look at the programs every 10 s, as in the daemon.
class Jobs : public ::testing::Test {
 protected:
  GpuClient& client(std::uint32_t pid) {
    for (auto& c : look.clients) {
      if (c.pid == pid) return c;
    }
    look.clients.push_back({});
    look.clients.back().pid = pid;
    look.clients.back().started = 1000 + pid;
    return look.clients.back();
  }
  void run(Duration time, const std::function<void()>& each_look = {}) {
    for (Duration passed{}; passed < time; passed += 10s) {
      if (each_look) each_look();
      look.time = machine.clock.now().steady;
      machine.engine.on_clients(machine.device, look);
      machine.run(10s);
    }
  }
  // The 42-fold slower load: 6 GiB held, one thread spins in the kernel, nothing flows.
  void stall() {
    auto& job = client(4242);
    job.open = job.queues = job.library = true;
    job.vram_bytes = 6144 * kMib;
    job.engine_percent = 0;
    job.cpu_percent = 100;
    job.thread_system_percent = 99;
    job.thread_user_percent = 0.4;
    job.read_bytes_per_s = 0;
  }
  [[nodiscard]] bool quiet(C type) const {
    return std::ranges::none_of(machine.changes, [&](const Change& c) { return c.condition.type == type; });
  }

  Machine machine;
  ClientLook look{{}, true, 32, {}};
};

TEST_F(Jobs, AThreadThatSpinsInTheKernelWhileTheGpuIsIdleIsAStall) {
  stall();
  run(2min);
  EXPECT_FALSE(machine.confirmed(C::JobStalled));
  run(40s);
  ASSERT_TRUE(machine.confirmed(C::JobStalled));
  const auto& condition = *machine.open(C::JobStalled);
  EXPECT_EQ(condition.detail,
            "The program with pid 4242 holds 6 GiB of video memory; one of its threads spends 99 % of its time in the "
            "kernel, nothing is read or copied, and the GPU is idle.");
  EXPECT_EQ(evidence(condition, "process"), "pid 4242");
  EXPECT_EQ(evidence(condition, "utilization.gfx"), "2 %");
}

TEST_F(Jobs, AStallThatEndsClears) {
  stall();
  run(3min);
  ASSERT_TRUE(machine.confirmed(C::JobStalled));
  client(4242).thread_system_percent.reset();
  run(1min);
  EXPECT_FALSE(machine.confirmed(C::JobStalled));
}

TEST_F(Jobs, TwoMebibytesASecondIsHowAStalledLoadGoesOn) {
  stall();
  run(3min, [this] { *client(4242).vram_bytes += 20 * kMib; });
  EXPECT_TRUE(machine.confirmed(C::JobStalled));
}

TEST_F(Jobs, ABigModelThatIsReadFromADiskIsNoStall) {
  stall();
  client(4242).read_bytes_per_s = 400e6;
  run(10min);
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, ABigModelThatIsCopiedFromMemoryIsNoStall) {
  stall();
  run(10min, [this] { *client(4242).vram_bytes += 5000 * kMib; });
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, APhaseOfWorkForTheProcessorIsNoStall) {
  stall();
  client(4242).thread_system_percent.reset();
  client(4242).cpu_percent = 1600;
  run(30min);
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, AThreadThatWaitsByYieldingIsNoStall) {
  stall();
  client(4242).thread_system_percent = 80;
  client(4242).thread_user_percent = 20;
  run(30min);
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, ADisplayServerThatHoldsMemoryAndRestsIsNoStall) {
  auto& server = client(800);
  server.open = true;
  server.vram_bytes = 900 * kMib;
  server.engine_percent = 0.5;
  server.cpu_percent = 3;
  run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST_F(Jobs, WhileTheGpuWorksThereIsNoStall) {
  stall();
  set(machine.sample, R::UtilizationGfx, 40);
  run(30min);
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, WhatCannotBeSeenOfAProcessRaisesNothing) {
  stall();
  client(4242).read_bytes_per_s.reset();  // not root
  run(30min);
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, AnotherProcessUnderTheSameNumberIsNotComparedWithTheFirst) {
  stall();
  run(30min, [this] { ++client(4242).started; });
  EXPECT_TRUE(quiet(C::JobStalled));
}

TEST_F(Jobs, OldNewsOfProgramsSayNothing) {
  stall();
  run(30s);
  machine.run(30min);  // the reader of the programs hangs
  EXPECT_FALSE(machine.confirmed(C::JobStalled));
}

// --- fell back to the processor --------------------------------------------------------------------------------------

TEST_F(Jobs, AProgramWithARuntimeThatKeepsTheProcessorsBusyAndNeverUsesTheGpuFellBack) {
  auto& job = client(77);
  job.library = true;
  job.cpu_percent = 2900;
  run(10min);
  EXPECT_FALSE(machine.confirmed(C::JobFellBack));
  run(1min);
  ASSERT_TRUE(machine.confirmed(C::JobFellBack));
  EXPECT_EQ(machine.open(C::JobFellBack)->severity, Severity::Info);
  EXPECT_EQ(
      machine.open(C::JobFellBack)->detail,
      "The program with pid 77 has a GPU runtime loaded, keeps 29 of 32 processors busy, and has not used the GPU.");
}

TEST_F(Jobs, AProgramThatUsedTheGpuBeforeIsInAPhaseForTheProcessor) {
  auto& job = client(77);
  job.library = job.open = true;
  job.engine_percent = 60;
  job.vram_bytes = 100 * kMib;
  run(20s);
  client(77).engine_percent = 0;
  client(77).cpu_percent = 2900;
  run(1h);
  EXPECT_TRUE(quiet(C::JobFellBack));
}

TEST_F(Jobs, AProgramThatHoldsAModelOnTheGpuDidNotFallBack) {
  auto& job = client(77);
  job.library = job.open = true;
  job.vram_bytes = 4096 * kMib;
  job.cpu_percent = 2900;
  run(1h);
  EXPECT_TRUE(quiet(C::JobFellBack));
}

TEST_F(Jobs, AFewThreadsThatPrepareDataAreNoFallBack) {
  auto& job = client(77);
  job.library = true;
  job.cpu_percent = 800;  // 8 of 32
  run(1h);
  EXPECT_TRUE(quiet(C::JobFellBack));
}

TEST_F(Jobs, ABusyProgramWithoutARuntimeIsNoneOfOurs) {
  client(77).cpu_percent = 3200;
  run(1h);
  EXPECT_TRUE(machine.changes.empty());
}

TEST_F(Jobs, NineMinutesOfPreparationAreNoFallBack) {
  client(77).library = true;
  client(77).cpu_percent = 2900;
  run(9min);
  client(77).vram_bytes = 20000 * kMib;
  client(77).cpu_percent = 100;
  run(10min);
  EXPECT_FALSE(machine.confirmed(C::JobFellBack));
}

// --- memory of nobody ------------------------------------------------------------------------------------------------

TEST_F(Jobs, MemoryThatGrowsAndThatNobodyHoldsIsALeak) {
  client(1).vram_bytes = 1024 * kMib;
  client(1).open = true;
  double used = 2 * kGib;
  const auto grow = [&] {
    used += 10 * 1024 * 1024;  // 600 MiB in ten minutes
    set(machine.sample, R::VramUsed, used);
  };
  run(20min, grow);
  EXPECT_FALSE(machine.confirmed(C::VramLeak));
  run(40min, grow);
  ASSERT_TRUE(machine.confirmed(C::VramLeak));
  EXPECT_EQ(evidence(*machine.open(C::VramLeak), "held by processes"), "1 GiB");
}

TEST_F(Jobs, MemoryThatAProgramHoldsIsNoLeak) {
  client(1).open = true;
  client(1).vram_bytes = 1024 * kMib;
  double used = 2 * kGib;
  run(2h, [&] {
    used += 10 * 1024 * 1024;
    *client(1).vram_bytes += 10 * kMib;
    set(machine.sample, R::VramUsed, used);
  });
  EXPECT_TRUE(quiet(C::VramLeak));
}

TEST_F(Jobs, OneJumpIsADisplayModeAndNoLeak) {
  set(machine.sample, R::VramUsed, 2 * kGib);
  run(1h);
  set(machine.sample, R::VramUsed, 5 * kGib);
  run(4h);
  EXPECT_FALSE(machine.confirmed(C::VramLeak));
}

TEST_F(Jobs, ProgramsThatComeAndGoBetweenTwoLooksAreNoLeak) {
  int n = 0;
  run(4h, [&] {
    // Memory in use is that of the moment, the list ten seconds old.
    set(machine.sample, R::VramUsed, (++n % 5 == 0 ? 20 : 2) * kGib);
  });
  EXPECT_TRUE(quiet(C::VramLeak));
}

TEST_F(Jobs, WhereNotEveryProcessCanBeSeenNoLeakIsSpokenOf) {
  look.complete = false;
  double used = 2 * kGib;
  run(3h, [&] { set(machine.sample, R::VramUsed, used += 10 * 1024 * 1024); });
  EXPECT_TRUE(quiet(C::VramLeak));
  look.complete = true;
  client(5).open = true;  // and what it holds is not known
  run(3h, [&] { set(machine.sample, R::VramUsed, std::min(used += 1024 * 1024, 23 * kGib)); });
  EXPECT_TRUE(quiet(C::VramLeak));
}

// --- throttle reasons without a cause --------------------------------------------------------------------------------

TEST(ThrottleContradicted, APowerReasonFarBelowTheLimitUnderLoad) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::PowerAverage, 130);
  machine.sample.throttle.insert(ThrottleReason::Ppt0);
  machine.run(3min);
  EXPECT_FALSE(machine.confirmed(C::ThrottleContradicted));
  machine.run(5min);
  ASSERT_TRUE(machine.confirmed(C::ThrottleContradicted));
  EXPECT_EQ(machine.open(C::ThrottleContradicted)->severity, Severity::Info);
  EXPECT_EQ(evidence(*machine.open(C::ThrottleContradicted), "PPT0"), "power 130 W of 303 W");
}

TEST(ThrottleContradicted, AThermalReasonOnACoolSensor) {
  Machine machine;
  put_under_load(machine.sample);
  set(machine.sample, R::TemperatureMemory, 60);
  machine.sample.throttle.insert(ThrottleReason::TempMem);
  machine.run(10min);
  ASSERT_TRUE(machine.confirmed(C::ThrottleContradicted));
  EXPECT_EQ(evidence(*machine.open(C::ThrottleContradicted), "TEMP_MEM"), "memory 60 C of 108 C");
}

TEST(ThrottleContradicted, AReasonThatHoldsOrCannotBeMeasuredIsNone) {
  for (const auto reason : {ThrottleReason::Ppt0, ThrottleReason::TempHotspot, ThrottleReason::TdcGfx,
                            ThrottleReason::TempVrGfx, ThrottleReason::Ppt1}) {
    Machine machine;
    put_under_load(machine.sample);
    machine.sample.throttle.insert(reason);
    machine.run(20min);
    EXPECT_FALSE(machine.confirmed(C::ThrottleContradicted)) << static_cast<int>(reason);
  }
}

TEST(ThrottleContradicted, BitsThatFlickerAtLightLoadAreNone) {
  Machine machine;
  int n = 0;
  set(machine.sample, R::UtilizationGfx, 25);
  set(machine.sample, R::PowerAverage, 60);
  machine.run(30min, 2s, [&](Sample& s) {
    s.throttle = {};
    if (++n % 2 == 0) s.throttle.insert(ThrottleReason::Ppt0);
  });
  EXPECT_TRUE(machine.changes.empty());
}

// --- two sources -----------------------------------------------------------------------------------------------------

class Sources : public ::testing::Test {
 protected:
  void compare(int times, const std::function<void(Sample&)>& theirs) {
    for (int i = 0; i < times; ++i) {
      Sample second = machine.sample;
      second.time = machine.clock.now();
      theirs(second);
      machine.engine.on_second_opinion(machine.device, second);
      machine.run(60s);
    }
  }
  Machine machine;
};

TEST_F(Sources, ALimitThatDiffersLastinglyIsNamedWithBothValues) {
  compare(2, [](Sample& s) { set(s, R::PowerCap, 250); });
  EXPECT_TRUE(machine.changes.empty());
  compare(4, [](Sample& s) { set(s, R::PowerCap, 250); });
  ASSERT_TRUE(machine.confirmed(C::SourcesDisagree));
  EXPECT_EQ(machine.open(C::SourcesDisagree)->detail, "power.cap: the kernel's file says 303 W, librocm_smi64 250 W.");
  EXPECT_EQ(evidence(*machine.open(C::SourcesDisagree), "power.cap"), "303 W");
  EXPECT_EQ(evidence(*machine.open(C::SourcesDisagree), "power.cap by librocm_smi64"), "250 W");
  compare(6, [](Sample&) {});
  EXPECT_FALSE(machine.confirmed(C::SourcesDisagree));
}

TEST_F(Sources, WhatMovesMayDifferAsFarAsItMoves) {
  int n = 0;
  compare(30, [&](Sample& s) {
    set(s, R::TemperatureJunction, 48 + (++n % 3 - 1) * 9);
    set(s, R::PowerAverage, 22 + n % 2 * 15);
    set(s, R::FanRpm, 200);
  });
  EXPECT_TRUE(machine.changes.empty());
}

TEST_F(Sources, WhatOneOfThemDoesNotSayIsNoDifference) {
  compare(30, [](Sample& s) { set_status(s, R::PowerCap, ReadingStatus::Unsupported); });
  EXPECT_TRUE(machine.changes.empty());
}

}  // namespace
}  // namespace gpuhealth::health
