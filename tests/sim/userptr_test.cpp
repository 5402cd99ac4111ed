// SPDX-License-Identifier: Apache-2.0
// The simulated way to pin memory, on pages of this process and on made-up page maps.
#include "sim/userptr.hpp"

#include <amdgpu_drm.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "canary/worker/host_memory.hpp"
#include "sim/drm_answers.hpp"

namespace gpuhealth::sim {
namespace {

using canary::HostMapping;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kOfFile = 1ULL << 63 | 1ULL << 61 | 1ULL << 56;
constexpr std::uint64_t kOwn = 1ULL << 63 | 1ULL << 56;
constexpr std::uint64_t kZeroPage = 1ULL << 63;
constexpr std::uint64_t kAbsent = 0;
constexpr std::uint32_t kWrite = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
constexpr std::uint32_t kReadOnly = kWrite | AMDGPU_GEM_USERPTR_READONLY;
constexpr UserptrPath kStall{.form = UserptrForm::Stall};
constexpr UserptrPath kFixed{.form = UserptrForm::Fixed};
constexpr UserptrPath kHealthy{.slot_ms = 1, .cow_slot_ms = 6};

TEST(CopiedOnWrite, OfAFileTheZeroPageAndSharedPagesButNotOwnOrAbsentOnes) {
  EXPECT_THAT(copied_on_write({kOwn, kAbsent, kOfFile, kZeroPage}, 0x400000),
              ElementsAre(ElementsAre(0x402000, 0x403000)));
  EXPECT_THAT(copied_on_write({kOwn, kAbsent}, 0x400000), IsEmpty());
}

TEST(CopiedOnWrite, SlotsAreThoseOfTheAddressSpace) {
  // 4 MiB that begin in the middle of a slot lie in three of them.
  const std::vector<std::uint64_t> pages(1024, kOfFile);
  EXPECT_THAT(copied_on_write(pages, 0x500000), SizeIs(3));
  EXPECT_THAT(copied_on_write(pages, 0x400000), SizeIs(2));
}

class UserptrTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = canary::make_file(4U << 20U);
    ASSERT_TRUE(made);
    file_ = std::move(*made);
  }
  HostMapping map(HostMapping::Kind kind) { return std::move(*HostMapping::make(kind, file_.get(), 4U << 20U)); }
  static Pinning pin_once(const HostMapping& m, std::uint32_t flags, const UserptrPath& path) {
    return pin(Caller(getpid()), reinterpret_cast<std::uint64_t>(m.data()), m.bytes(), flags, path);
  }
  Fd file_;
};

TEST_F(UserptrTest, TheFaultSpinsASecondForEachSlotAndThenSucceeds) {
  const auto m = map(HostMapping::Kind::FileWritable);
  for (int slot = 0; slot < 2; ++slot) {
    const auto attempt = pin_once(m, kWrite, kStall);
    EXPECT_EQ(attempt.error, EAGAIN);
    EXPECT_EQ(attempt.spin_ms, 1000);
  }
  EXPECT_EQ(pin_once(m, kWrite, kStall).error, 0);
  // The copy has its own pages now, and they hold what the file held: word 1000 of the pattern is 1000.
  EXPECT_NE(m.state_problem(), "");
  EXPECT_EQ(static_cast<const std::uint32_t*>(m.data())[1000], 1000U);
}

TEST_F(UserptrTest, TheFixAnswersAtOnceAndAlsoOncePerSlot) {
  const auto m = map(HostMapping::Kind::FileWritable);
  EXPECT_EQ(pin_once(m, kWrite, kFixed).error, EAGAIN);
  EXPECT_EQ(pin_once(m, kWrite, kFixed).spin_ms, 0);
  EXPECT_EQ(pin_once(m, kWrite, kFixed).error, 0);
}

TEST_F(UserptrTest, AHealthyKernelSucceedsAtOnceAndIsSlowerOnlyByTheCopying) {
  const auto probe = pin_once(map(HostMapping::Kind::FileWritable), kWrite, kHealthy);
  EXPECT_EQ(probe.error, 0);
  EXPECT_EQ(probe.wait_ms, 12);
  const auto control = pin_once(map(HostMapping::Kind::Anonymous), kWrite, kHealthy);
  EXPECT_EQ(control.error, 0);
  EXPECT_EQ(control.wait_ms, 2);
}

TEST_F(UserptrTest, OwnMemoryAndReadOnlyIntentNeverStall) {
  EXPECT_EQ(pin_once(map(HostMapping::Kind::Anonymous), kWrite, kStall).error, 0);
  EXPECT_EQ(pin_once(map(HostMapping::Kind::FileReadOnly), kReadOnly, kStall).error, 0);
}

TEST_F(UserptrTest, WhatTheKernelRefusesIsRefused) {
  const auto m = map(HostMapping::Kind::FileReadOnly);
  EXPECT_EQ(pin_once(m, kWrite, kStall).error, EFAULT);
  EXPECT_EQ(pin_once(m, AMDGPU_GEM_USERPTR_VALIDATE, kStall).error, EACCES);
  EXPECT_EQ(pin_once(m, kReadOnly | AMDGPU_GEM_USERPTR_ANONONLY, kStall).error, EPERM);
  EXPECT_EQ(pin_once(m, 1U << 20U, kStall).error, EINVAL);
  EXPECT_EQ(pin(Caller(getpid()), 4096, 4096, kWrite, kStall).error, EFAULT) << "nothing is mapped there";
}

template <class T>
T info_of(std::uint32_t query, std::uint32_t detail, const Card& card) {
  std::string bytes;
  T out{};
  EXPECT_EQ(answer_info(query, detail, card, bytes), 0);
  EXPECT_EQ(bytes.size(), sizeof out);
  std::memcpy(&out, bytes.data(), std::min(bytes.size(), sizeof out));
  return out;
}

TEST(DrmAnswers, AreThoseOfTheCard) {
  Card card = idle_card(rx7900xtx(), 0);
  card.state.edge_c = 71;
  const auto device = info_of<drm_amdgpu_info_device>(AMDGPU_INFO_DEV_INFO, 0, card);
  EXPECT_EQ(device.device_id, 0x744cU);
  EXPECT_EQ(device.family, 145U);
  EXPECT_EQ(device.cu_active_number, 96U);
  EXPECT_EQ(info_of<std::uint32_t>(AMDGPU_INFO_SENSOR, AMDGPU_INFO_SENSOR_GPU_TEMP, card), 71000U);
  const auto memory = info_of<drm_amdgpu_memory_info>(AMDGPU_INFO_MEMORY, 0, card);
  EXPECT_EQ(memory.vram.total_heap_size, 25769803776U);
  std::string none;
  EXPECT_EQ(answer_info(0xff, 0, card, none), EINVAL);
  EXPECT_EQ(answer_info(AMDGPU_INFO_SENSOR, 99, card, none), EINVAL);
}

}  // namespace
}  // namespace gpuhealth::sim
