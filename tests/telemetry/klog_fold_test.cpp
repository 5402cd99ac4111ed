// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "klog_support.hpp"

namespace gpuhealth::klog {
namespace {

using test::brief;
using test::Said;
using test::said_of;

std::string page_fault(int second, const std::string& device) {
  return "[ " + std::to_string(second) + ".000000] amdgpu " + device +
         ": amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32773)\n";
}

TEST(KlogFold, AStormIsOneEventWithItsCount) {
  std::string log;
  for (int i = 0; i < 500; ++i) log += page_fault(100 + i / 50, "0000:03:00.0");
  EXPECT_EQ(said_of(log), Said{"1 page_fault warning 0000:03:00.0 x500"});
}

TEST(KlogFold, TwoCardsAreTwoEvents) {
  EXPECT_EQ(said_of(page_fault(1, "0000:03:00.0") + page_fault(1, "0000:83:00.0") + page_fault(2, "0000:03:00.0")),
            (Said{"1 page_fault warning 0000:03:00.0 x2", "2 page_fault warning 0000:83:00.0 x1"}));
}

TEST(KlogFold, AfterAMinuteOfSilenceItIsAnotherEvent) {
  EXPECT_EQ(said_of(page_fault(10, "0000:03:00.0") + page_fault(69, "0000:03:00.0") + page_fault(130, "0000:03:00.0")),
            (Said{"1 page_fault warning 0000:03:00.0 x2", "3 page_fault warning 0000:03:00.0 x1"}));
}

TEST(KlogFold, EachResetIsAnEventOfItsOwn) {
  const std::string begin = "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n";
  EXPECT_EQ(said_of("[ 1.0] " + begin + "[ 2.0] " + begin),
            (Said{"1 gpu.reset.begin warning 0000:03:00.0 x1", "2 gpu.reset.begin warning 0000:03:00.0 x1"}));
}

TEST(KlogFold, WordsThatRepeatAFailureAreNotAnotherOne) {
  EXPECT_EQ(said_of("[ 1.0] amdgpu 0000:02:00.0: amdgpu: GPU reset(2) failed\n"
                    "[ 1.0] amdgpu 0000:02:00.0: amdgpu: GPU reset end with ret = -22\n"
                    "[ 1.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* GPU Recovery Failed: -22\n"),
            Said{"1 gpu.reset.failed critical 0000:02:00.0 x1"});
}

TEST(KlogFold, ALineWithoutADeviceYieldsToOneThatNamesIt) {
  EXPECT_EQ(said_of("[ 5.1] [drm:amdgpu_device_init [amdgpu]] *ERROR* hw_init of IP block <gfx_v11_0> failed -110\n"
                    "[ 5.2] amdgpu 0000:03:00.0: amdgpu: amdgpu_device_ip_init failed\n"
                    "[ 5.3] amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init\n"),
            Said{"3 init.failed critical 0000:03:00.0 x1"});
}

TEST(KlogFold, AResetThatFailedAfterAllDidNotSucceed) {
  EXPECT_EQ(said_of("[ 1.0] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"
                    "[ 2.0] amdgpu 0000:03:00.0: amdgpu: GPU reset succeeded, trying to resume\n"
                    "[ 12.0] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n"),
            (Said{"1 gpu.reset.begin warning 0000:03:00.0 x1", "3 gpu.reset.failed critical 0000:03:00.0 x1"}));
}

TEST(KlogFold, TheLastWordOfAResetIsTheOneShown) {
  EXPECT_EQ(said_of("[ 2.0] amdgpu 0000:03:00.0: amdgpu: GPU reset succeeded, trying to resume\n"
                    "[ 3.0] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) succeeded!\n"),
            Said{"2 gpu.reset.succeeded info 0000:03:00.0 x1"});
}

TEST(KlogFold, WithoutTimesLinesCloseTogetherAreOneBurst) {
  std::string log;
  for (int i = 0; i < 3; ++i) log += "amdgpu 0000:09:00.0: amdgpu: SMU: I'm not done with your previous command\n";
  for (int i = 0; i < 600; ++i) log += "some other line\n";
  log += "amdgpu 0000:09:00.0: amdgpu: SMU: I'm not done with your previous command\n";
  EXPECT_EQ(said_of(log),
            (Said{"1 smu.unresponsive critical 0000:09:00.0 x3", "604 smu.unresponsive critical 0000:09:00.0 x1"}));
}

TEST(KlogFold, TheProgramIsTakenFromTheLineBehind) {
  const auto events = classify(
      "[ 1.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=3\n"
      "[ 1.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process My Game.exe pid 702264 thread My "
      "Game:cs0 pid 703382\n");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].process, "My Game.exe");
  EXPECT_EQ(events[0].pid, 702264U);
  EXPECT_EQ(events[0].subject, "gfx");
}

// Live: told at once, and counted when the burst is over.
TEST(KlogFold, ALiveStormIsToldAtOnceAndCountedAtItsEnd) {
  Classifier live;
  std::string told;
  for (int i = 0; i < 1000; ++i) {
    const auto line = page_fault(100 + i / 100, "0000:03:00.0");
    live.learn(line);
    live.feed(line, static_cast<std::uint64_t>(i) + 1);
    for (const auto& event : live.take_news()) told += brief(event) + "\n";
  }
  EXPECT_EQ(told, "1 page_fault warning 0000:03:00.0 x1\n");
  live.advance({Stamp::Kind::Uptime, 169'000'000});  // the last line was at 109 s
  EXPECT_TRUE(live.take_news().empty());
  live.advance({Stamp::Kind::Uptime, 170'000'000});
  const auto rest = live.take_news();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].count, 999U);
}

TEST(KlogFold, ALiveResetIsCalledASuccessWhenItsBlocksAreUp) {
  Classifier live;
  auto feed = [&, n = std::uint64_t{0}](std::string_view line) mutable {
    live.learn(line);
    live.feed(line, ++n);
    std::string told;
    for (const auto& event : live.take_news()) told += std::string(info(event.type).name) + " ";
    return told;
  };
  EXPECT_EQ(feed("3,1,1000000,-;amdgpu 0000:03:00.0: GPU reset begin!. Source:  1"), "gpu.reset.begin ");
  EXPECT_EQ(feed("3,2,2000000,-;amdgpu 0000:03:00.0: GPU reset succeeded, trying to resume"), "");
  EXPECT_EQ(feed("3,3,3000000,-;amdgpu 0000:03:00.0: GPU reset(2) succeeded!"), "gpu.reset.succeeded ");
}

}  // namespace
}  // namespace gpuhealth::klog
