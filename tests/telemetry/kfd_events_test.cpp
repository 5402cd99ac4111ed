// SPDX-License-Identifier: Apache-2.0
// Records as the kernel writes them (kfd_smi_events.c, kfd_ioctl.h of Linux 6.1, 6.12 and 7.0).
#include "telemetry/kfd_events.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::telemetry {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
const PciAddress kGpu{0, 3, 0, 0};
const PciAddress kOther{0, 9, 0, 0};

TEST(KfdEvents, AResetHasANumberAndInNewerKernelsACause) {
  const auto old = parse_kfd_event("3 1f");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->kind, KfdEventKind::ResetBegin);
  EXPECT_EQ(old->number, 31u);
  EXPECT_EQ(old->words, "");
  const auto fresh = parse_kfd_event("3 2 job hang on ring:gfx_0.0.0");
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->number, 2u);
  EXPECT_EQ(fresh->words, "job hang on ring:gfx_0.0.0");
  EXPECT_EQ(parse_kfd_event("4 2 ")->kind, KfdEventKind::ResetEnd);
}

TEST(KfdEvents, NumbersAreHexadecimalButForTimesAndProcesses) {
  const auto fault = parse_kfd_event("1 4d2:python3");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, KfdEventKind::PageFault);
  EXPECT_EQ(fault->pid, 1234u);
  EXPECT_EQ(fault->words, "python3");
  const auto hot = parse_kfd_event("2 10:a");
  ASSERT_TRUE(hot);
  EXPECT_EQ(hot->mask, 16u);
  EXPECT_EQ(hot->number, 10u);
  const auto off = parse_kfd_event("9 81234567 -1234 9c41 1");
  ASSERT_TRUE(off);
  EXPECT_EQ(off->kind, KfdEventKind::QueuesOff);
  EXPECT_EQ(off->pid, 1234u);
  EXPECT_EQ(off->number, 1u);
  EXPECT_EQ(parse_kfd_event("a 81234567 -1234 9c41 0")->kind, KfdEventKind::QueuesOn);
}

TEST(KfdEvents, WhatIsNoneOfTheseSaysNothing) {
  for (const char* text : {"", " ", "3", "3 ", "3 xyz", "1 :name", "1 12", "2 10", "2 :1", "9 1 1234 9c41 1",
                           "9 1 -x 1 1", "5 1 -2 @0(1) 0->1", "40 1", "zz 1"})
    EXPECT_EQ(text == std::string("1 12") ? parse_kfd_event(text)->words
              : parse_kfd_event(text)     ? "?"
                                          : "",
              "")
        << text;
}

TEST(KfdEvents, ARecordThatComesInPiecesIsOne) {
  KfdEventLog log;
  for (const char* piece : {"3 2 job ", "hang on ", "ring:gfx", "\n4 2 \n1 4"}) log.take(kGpu, piece, kSecond);
  log.take(kOther, "3 9\n", kSecond);
  log.take(kGpu, "d2:a\n", kSecond);
  const auto news = log.news(kSecond);
  ASSERT_TRUE(news);
  ASSERT_EQ(news->items.size(), 4u);
  EXPECT_EQ(news->items[0].event.type, klog::Type::GpuResetBegin);
  EXPECT_EQ(news->items[0].event.text, "compute driver: reset 2 begins: job hang on ring:gfx");
  EXPECT_EQ(news->items[0].gpu, kGpu);
  EXPECT_EQ(news->items[1].event.type, klog::Type::GpuResetSucceeded);
  EXPECT_EQ(news->items[2].gpu, kOther);
  EXPECT_EQ(news->items[3].event.type, klog::Type::PageFault);
  EXPECT_EQ(news->items[3].event.pid, 1234u);
  EXPECT_EQ(news->items[3].event.process, "a");
  EXPECT_EQ(news->lost, 0u);
}

TEST(KfdEvents, WhatTheFullQueueDroppedIsCountedByTheResetsNumbers) {
  KfdEventLog log;
  log.take(kGpu, "3 7\n", 0);
  log.take(kOther, "3 1\n", 0);
  EXPECT_EQ(log.news(0)->lost, 0u) << "the first number is nobody's gap";
  log.take(kGpu, "3 a\n", kSecond);
  EXPECT_EQ(log.news(kSecond)->lost, 2u);
}

TEST(KfdEvents, ABurstIsOneEventAndThenOneWithACount) {
  KfdEventLog log;
  for (int i = 0; i < 1000; ++i) log.take(kGpu, "1 4d2:python3\n", kSecond);
  log.take(kGpu, "1 4d3:other\n", kSecond);
  const auto first = log.news(kSecond);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->items.size(), 2u) << "one for each program";
  EXPECT_TRUE(log.waits());
  EXPECT_FALSE(log.news(59 * kSecond));
  const auto rest = log.news(61 * kSecond);
  ASSERT_TRUE(rest);
  ASSERT_EQ(rest->items.size(), 1u);
  EXPECT_EQ(rest->items[0].event.count, 999u);
  log.news(130 * kSecond);
  EXPECT_FALSE(log.waits());
}

TEST(KfdEvents, QueuesThatAreNotPutBackAreTold) {
  KfdEventLog log([](std::uint32_t pid) { return pid != 77; });
  log.take(kGpu, "9 1 -1234 9c41 2\n9 1 -77 9c41 2\n9 1 -55 9c41 1\n9 1 -66 9c41 3\n", 0);
  log.take(kGpu, "a 2 -55 9c41 0\n", kSecond);
  ASSERT_TRUE(log.news(kSecond));
  const auto late = log.news(31 * kSecond);
  ASSERT_TRUE(late);
  ASSERT_EQ(late->items.size(), 1u) << "not the one that ended, the one that is back, or one of a sleeping machine";
  EXPECT_EQ(late->items[0].event.type, klog::Type::QueueEvictFailed);
  EXPECT_EQ(
      late->items[0].event.text,
      "compute driver: queues of process 1234 were taken off (video memory is short) and are not back after 30 s");
}

TEST(KfdEvents, AProgramsNameIsNoLineOfOurs) {
  KfdEventLog log;
  log.take(kGpu, "1 4d2:a\tb\x1b[31m\n", 0);
  EXPECT_EQ(log.news(0)->items[0].event.process, "a?b?[31m");
}

TEST(KfdEvents, WithoutALineEndNothingGrowsForEver) {
  KfdEventLog log;
  for (int i = 0; i < 100000; ++i) log.take(kGpu, "xxxxxxxxx", 0);
  EXPECT_FALSE(log.news(0));
  log.take(kGpu, "\n3 5\n", 0);
  EXPECT_EQ(log.news(0)->items.size(), 1u);
}

}  // namespace
}  // namespace gpuhealth::telemetry
