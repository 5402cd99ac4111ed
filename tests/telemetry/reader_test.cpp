// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reader.hpp"

#include <gtest/gtest.h>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

class ReaderTest : public ::testing::Test {
 protected:
  std::vector<Frame> answer(RequestKind kind, std::vector<std::uint64_t> devices, bool reopen = false) {
    Request request;
    request.kind = kind;
    request.devices = std::move(devices);
    request.reopen = reopen;
    request.tick = ++tick_;
    std::vector<std::uint8_t> bytes;
    reader_.answer(request, bytes);
    FrameParser parser;
    parser.feed(bytes);
    std::vector<Frame> frames;
    for (auto frame = parser.next(); frame && *frame; frame = parser.next()) frames.push_back(std::move(**frame));
    return frames;
  }

  test::TempDir root_;
  ManualClock clock_{{wall_from_microseconds(1), {1'000'000'000}}};
  Progress progress_;
  Reader reader_{root_.string(), clock_, &progress_};
  std::uint64_t tick_ = 0;
};

TEST_F(ReaderTest, DiscoverySkipsWhatItMustNotTouch) {
  const auto cards = sim::healthy_machine(2);
  ASSERT_TRUE(sim::write_machine(root_.path(), cards));
  const auto frames = answer(RequestKind::Discover, {pack(cards[1].place.gpu)});
  ASSERT_EQ(frames.size(), 2u);
  const auto& devices = std::get<DevicesFrame>(frames[0]);
  ASSERT_EQ(devices.devices.size(), 1u);
  EXPECT_EQ(devices.devices[0].pci, cards[0].place.gpu);
  EXPECT_EQ(devices.untouched, (std::vector{pack(cards[1].place.gpu)}));
  EXPECT_EQ(std::get<DoneFrame>(frames[1]).tick, 1u);
}

TEST_F(ReaderTest, SamplesWhatItIsAskedForInThatOrder) {
  const auto cards = sim::healthy_machine(3);
  ASSERT_TRUE(sim::write_machine(root_.path(), cards));
  const auto frames = answer(RequestKind::Sample, {pack(cards[2].place.gpu), pack(cards[0].place.gpu)});
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(std::get<SampleFrame>(frames[0]).device, pack(cards[2].place.gpu));
  EXPECT_EQ(std::get<SampleFrame>(frames[1]).device, pack(cards[0].place.gpu));
  EXPECT_TRUE(std::get<SampleFrame>(frames[1]).sample.value(ReadingId::PowerCap))
      << "the first sample of a device is a slow one";
}

TEST_F(ReaderTest, ADeviceThatIsNotThereIsSaidToBeGone) {
  ASSERT_TRUE(sim::write_machine(root_.path(), sim::healthy_machine(1)));
  const auto frames = answer(RequestKind::Sample, {pack({0, 0x77, 0, 0})});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_FALSE(std::get<SampleFrame>(frames[0]).present);
}

TEST_F(ReaderTest, ATreeWithoutSysfsIsSaidInWords) {
  const auto frames = answer(RequestKind::Discover, {});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_NE(std::get<DevicesFrame>(frames[0]).error.find("sys/bus/pci/devices"), std::string::npos);
}

TEST_F(ReaderTest, IsNowhereWhenItHasAnswered) {
  const auto cards = sim::healthy_machine(1);
  ASSERT_TRUE(sim::write_machine(root_.path(), cards));
  answer(RequestKind::Sample, {pack(cards[0].place.gpu)});
  EXPECT_EQ(progress_.device.load(), Progress::kNoDevice);
}

}  // namespace
}  // namespace gpuhealth::telemetry
