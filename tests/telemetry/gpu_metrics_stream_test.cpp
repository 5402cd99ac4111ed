// SPDX-License-Identifier: Apache-2.0
// The packed attribute streams of gpu_metrics 1.9 and partition 1.1.
#include <gtest/gtest.h>

#include "telemetry/gpu_metrics.hpp"
#include "tests/telemetry/decoder_support.hpp"

namespace gpuhealth::telemetry {
namespace {

using Values = std::vector<std::optional<double>>;
constexpr auto kNone = std::nullopt;
constexpr unsigned kU8 = 0;
constexpr unsigned kS16 = 3;
constexpr unsigned kU16 = 2;
constexpr unsigned kU32 = 4;
constexpr unsigned kU64 = 6;

TEST(GpuMetricsStream, ByteForByte) {
  // header: 28 bytes, 1.9; two attributes; temperature_hotspot u16 x1 = 45; gfx-clocks (id 33) u16 x2 = 2100, none.
  const ByteVector bytes = {0x1E, 0x00, 0x01, 0x09, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x20, 0x02, 0x00, 0x00, 0x00,
                            0x00, 0x2D, 0x00, 0x02, 0x84, 0x20, 0x01, 0x00, 0x00, 0x00, 0x00, 0x34, 0x08, 0xFF, 0xFF};
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.note, "");
  EXPECT_EQ(m.find("temperature_hotspot")->values, Values{45});
  EXPECT_FALSE(m.find("temperature_hotspot")->array);
  EXPECT_EQ(m.find("current_gfxclk")->values, (Values{2100, kNone}));
  EXPECT_TRUE(m.find("current_gfxclk")->array);
  EXPECT_EQ(m.value("structure_size"), 30);
  EXPECT_EQ(m.value("attr_count"), 2);
  EXPECT_EQ(m.fields.size(), 6U);
}

TEST(GpuMetricsStream, ValuesFollowWithoutAlignment) {
  const auto m = decode_gpu_metrics(
      StreamBuilder().add(16, kU8, {16}).add(25, kU64, {0x1122334455667788}).add(17, kU16, {320}).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("pcie_link_width"), 16);
  EXPECT_EQ(m.find("pcie_replay_count_acc")->raw[0], 0x1122334455667788U);
  EXPECT_EQ(m.value("pcie_link_speed"), 320);
}

TEST(GpuMetricsStream, UnknownIdsAreSkippedBySizeAndCounted) {
  const auto m =
      decode_gpu_metrics(StreamBuilder().add(48, kU16, {1, 2, 3}).add(700, kU8, {9}).add(3, kU16, {600}).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("curr_socket_power"), 600);
  EXPECT_EQ(m.note, "2 attributes of unknown ids skipped");
}

TEST(GpuMetricsStream, IdDecidesNotTheUnitTag) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(22, kU64, {77}, 10).bytes());  // a bandwidth tagged "percent"
  EXPECT_EQ(m.value("pcie_bandwidth_acc"), 77);
}

TEST(GpuMetricsStream, AllOnesAreAbsentInTheAttributesOwnWidth) {
  const auto m =
      decode_gpu_metrics(StreamBuilder().add(4, kU16, {0xFFFF}).add(5, kU32, {0xFFFF}).add(1, kS16, {0xFFFF}).bytes());
  EXPECT_EQ(m.find("average_gfx_activity")->values, Values{kNone});
  EXPECT_EQ(m.find("average_umc_activity")->values, Values{65535});
  EXPECT_EQ(m.find("temperature_mem")->values, Values{kNone});
}

TEST(GpuMetricsStream, SignedValuesKeepTheirSign) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(1, kS16, {0xFFFB}).bytes());
  EXPECT_EQ(m.value("temperature_mem"), -5);
  EXPECT_TRUE(m.find("temperature_mem")->is_signed);
  EXPECT_EQ(static_cast<std::int64_t>(m.find("temperature_mem")->raw[0]), -5);
}

TEST(GpuMetricsStream, StreamThatEndsEarlyIsTruncated) {
  auto bytes = StreamBuilder().add(0, kU16, {45}).add(3, kU16, {600}).bytes();
  bytes.pop_back();
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.value("temperature_hotspot"), 45);
  EXPECT_EQ(m.find("curr_socket_power"), nullptr);
  EXPECT_EQ(m.note, "the header states 28 bytes, the file has 27; the stream ends after 1 of 2 attributes");
}

TEST(GpuMetricsStream, CountBeyondTheBytesIsTruncatedAndEnds) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(0, kU16, {45}).count(0x7FFFFFFF).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.value("temperature_hotspot"), 45);
}

TEST(GpuMetricsStream, HeaderWithoutACountIsTruncated) {
  const ByteVector bytes = {0x40, 0x00, 0x01, 0x09, 0x01};
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.fields.size(), 3U);
}

TEST(GpuMetricsStream, NegativeCountIsInvalid) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(0, kU16, {45}).count(0xFFFFFFFF).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Invalid);
  EXPECT_EQ(m.note, "the stream states a negative number of attributes");
  EXPECT_TRUE(m.fields.empty());
}

TEST(GpuMetricsStream, UnknownTypeEndsTheWalk) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(0, kU16, {45}).add(1, 8, {0}).add(3, kU16, {600}).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.value("temperature_hotspot"), 45);
  EXPECT_EQ(m.find("curr_socket_power"), nullptr);
  EXPECT_EQ(m.note, "an unknown type of value after 1 of 3 attributes");
}

TEST(GpuMetricsStream, StreamInAPageIsLonger) {
  auto bytes = StreamBuilder().add(0, kU16, {45}).bytes();
  bytes.resize(4096, 0);
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Longer);
  EXPECT_EQ(m.value("temperature_hotspot"), 45);
}

TEST(GpuMetricsStream, AttributeTwiceKeepsBoth) {
  const auto m = decode_gpu_metrics(StreamBuilder().add(40, kU32, {1}).add(40, kU32, {2}).bytes());
  EXPECT_EQ(m.value("gfx_busy_inst"), 1);
  EXPECT_EQ(m.value("gfx_busy_inst#2"), 2);
}

TEST(GpuMetricsStream, NewerStreamIsReadAndSaidToBeUnknown) {
  const auto m = decode_gpu_metrics(StreamBuilder(10).add(0, kU16, {45}).add(90, kU16, {1}).bytes());
  EXPECT_EQ(m.status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(m.value("temperature_hotspot"), 45);
  EXPECT_EQ(
      m.note,
      "revision 1.10 is newer than all known: read as a stream of attributes; 1 attributes of unknown ids skipped");
}

TEST(GpuMetricsStream, PartitionFileHasAStreamToo) {
  const auto bytes = StreamBuilder(1).add(33, kU16, {1800, 1790}).add(40, kU32, {55}).bytes();
  const auto m = decode_gpu_metrics(bytes, MetricsFile::Partition);
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.find("current_gfxclk")->values, (Values{1800, 1790}));
  EXPECT_EQ(m.value("gfx_busy_inst"), 55);
}

}  // namespace
}  // namespace gpuhealth::telemetry
