// SPDX-License-Identifier: Apache-2.0
// The probe itself, against kernels that are functions here. What the three forms do was measured on real kernels
// (docs/canaries.md).
#include "canary/worker/host_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "canary/stats/detectors.hpp"
#include "canary/worker/kernels.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::size_t kSlot = kSlotBytes;

TEST(HostMapping, AReadFaultedPrivateFileMappingIsPresentAndStillTheFiles) {
  const auto file = make_file(kSlot);
  ASSERT_TRUE(file);
  const auto m = HostMapping::make(HostMapping::Kind::FileWritable, file->get(), kSlot);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->state_problem(), "");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m->data()) % kSlot, 0U);
}

TEST(HostMapping, OneUseTakesTheStateAway) {
  const auto file = make_file(kSlot);
  auto m = HostMapping::make(HostMapping::Kind::FileWritable, file->get(), kSlot);
  static_cast<char*>(m->data())[4096] = 1;  // what a pinning kernel's write fault does
  EXPECT_NE(m->state_problem(), "");
}

TEST(HostMapping, TheControlIsWrittenAnonymousMemory) {
  const auto m = HostMapping::make(HostMapping::Kind::Anonymous, -1, kSlot);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->state_problem(), "");
  EXPECT_EQ(static_cast<char*>(m->data())[kSlot - 1], 1);
}

TEST(PinProbe, AHealthyKernelIsHealthy) {
  const auto probe = probe_pinning([](void*, std::size_t) { return 0; });
  EXPECT_EQ(probe.error, "");
  EXPECT_EQ(probe.mappings.size(), 3U);
  EXPECT_FALSE(stats::judge_mappings(probe.mappings).stalled);
}

TEST(PinProbe, TheFixedKernelAsksAgainOnceASlotAndIsHealthy) {
  // Form C: EAGAIN at once a slot, then success.
  int calls = 0;
  const auto probe = probe_pinning([&](void*, std::size_t) { return ++calls % 3 == 0 ? 0 : EAGAIN; });
  EXPECT_EQ(probe.mappings.size(), 3U);
  EXPECT_FALSE(stats::judge_mappings(probe.mappings).stalled);
}

TEST(PinProbe, AKernelThatNeverPinsFails) {
  const auto probe = probe_pinning([](void*, std::size_t) { return EAGAIN; });
  EXPECT_NE(probe.error, "");
  EXPECT_TRUE(probe.mappings.empty());
}

// By system call: the address sanitizer makes the function do nothing. Sixteen pages: what anybody may lock (8 MiB
// where systemd sets the limit) holds them, addresses reserved for alignment and a sanitizer's own memory included.
TEST(PinProbe, LockedMemoryIsInconclusiveNotHealthy) {
  ASSERT_EQ(syscall(SYS_mlockall, MCL_FUTURE), 0);
  const auto probe = probe_pinning([](void*, std::size_t) { return 0; }, 3, 16 * 4096);
  syscall(SYS_munlockall);
  EXPECT_NE(probe.inconclusive, "");
  EXPECT_TRUE(probe.mappings.empty());
}

TEST(Reference, TheGeneratorJumpsAsItSteps) {
  std::uint32_t x = 7;
  for (int i = 0; i < 1000; ++i) x = x * 1664525U + 1013904223U;
  EXPECT_EQ(reference::lcg(7, 1000), x);
  EXPECT_EQ(reference::lcg(7, 0), 7U);
}

TEST(Reference, SpinningTakesFourThousandAndNinetySixStepsATurn) {
  std::uint32_t x = 63;
  for (int i = 0; i < 8192; ++i) {
    x = x * 1664525U + 1013904223U;
    x ^= x >> 15U;
  }
  EXPECT_EQ(reference::spin(63, 2), x);
}

TEST(Reference, TheLinksAreOneCycle) {
  constexpr std::uint32_t kMask = 0xfff;
  std::uint32_t at = 5;
  int steps = 0;
  do {
    at = reference::chase(at, 1, kMask);
    ++steps;
  } while (at != 5 && steps < 100000);
  EXPECT_EQ(steps, 4096);
}

TEST(Reference, PatternsPutEveryBitInBothStates) {
  EXPECT_EQ(reference::pattern(1, 3, 0), 8U);
  EXPECT_EQ(reference::pattern(2, 3, 0), ~8U);
  EXPECT_EQ(reference::pattern(3, 0, 0), 0xaaaaaaaaU);
  EXPECT_EQ(reference::pattern(0, 0x10, 0x01), 0x11U);
}

}  // namespace
}  // namespace gpuhealth::canary
