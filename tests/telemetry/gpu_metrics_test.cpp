// SPDX-License-Identifier: Apache-2.0
// Sizes, revisions and sentinels of the struct layouts, on tables built by hand.
#include "telemetry/gpu_metrics.hpp"

#include <gtest/gtest.h>

#include <climits>

#include "tests/telemetry/decoder_support.hpp"

namespace gpuhealth::telemetry {
namespace {

using Values = std::vector<std::optional<double>>;
constexpr auto kNone = std::nullopt;

TEST(GpuMetrics, EmptyFileIsInvalid) {
  const auto m = decode_gpu_metrics({});
  EXPECT_EQ(m.status, MetricsStatus::Invalid);
  EXPECT_EQ(m.note, "the file is empty");
  EXPECT_TRUE(m.fields.empty());
}

TEST(GpuMetrics, ThreeBytesAreNoHeader) {
  const ByteVector bytes = {120, 0, 1};
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Invalid);
  EXPECT_EQ(m.note, "3 bytes are less than a header");
}

TEST(GpuMetrics, StatedSizeOfZeroOrAllOnesIsInvalid) {
  for (const unsigned size : {0U, 3U, 0xFFFFU}) {
    const auto m = decode_gpu_metrics(TableBuilder(120, 1, 3).put(0, 2, size).bytes());
    EXPECT_EQ(m.status, MetricsStatus::Invalid) << size;
    EXPECT_TRUE(m.fields.empty()) << size;
  }
  EXPECT_EQ(decode_gpu_metrics(TableBuilder(120, 1, 3).put(0, 2, 0).bytes()).note, "the header states a size of 0");
}

TEST(GpuMetrics, DeadBusOfAllOnesIsInvalid) {
  const ByteVector bytes(120, 0xFF);
  EXPECT_EQ(decode_gpu_metrics(bytes).status, MetricsStatus::Invalid);
}

TEST(GpuMetrics, UnknownFormatIsInvalid) {
  for (const unsigned format : {0U, 4U, 7U, 255U}) {
    const auto m = decode_gpu_metrics(TableBuilder(120, format, 0).bytes());
    EXPECT_EQ(m.status, MetricsStatus::Invalid) << format;
    EXPECT_TRUE(m.fields.empty()) << format;
    EXPECT_EQ(m.format, format);
  }
  EXPECT_EQ(decode_gpu_metrics(TableBuilder(120, 7, 2).bytes()).note, "revision 7.2 is of no known format");
}

TEST(GpuMetrics, CutFileKeepsOnlyWholeFields) {
  auto bytes = TableBuilder(120, 1, 3).put(4, 2, 40).put(24, 8, 99).put(88, 2, 50).bytes();
  bytes.resize(31);  // one byte short of energy_accumulator (24..31)
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.note, "the header states 120 bytes, the file has 31");
  EXPECT_EQ(m.value("temperature_edge"), 40);
  EXPECT_EQ(m.find("energy_accumulator"), nullptr);
  EXPECT_EQ(m.find("temperature_hbm"), nullptr);
  EXPECT_EQ(m.fields.size(), 13U);  // header 3, temperatures 6, activities 3, power 1
}

TEST(GpuMetrics, ArrayThatIsCutIsAbsentAsAWhole) {
  auto bytes = TableBuilder(120, 1, 3).put(88, 2, 50).put(90, 2, 51).bytes();
  bytes.resize(95);
  EXPECT_EQ(decode_gpu_metrics(bytes).find("temperature_hbm"), nullptr);
  EXPECT_NE(decode_gpu_metrics(bytes).find("mem_activity_acc"), nullptr);
}

TEST(GpuMetrics, HeaderAloneIsTruncated) {
  auto bytes = TableBuilder(120, 1, 3).bytes();
  bytes.resize(4);
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.fields.size(), 3U);
}

TEST(GpuMetrics, TrailingBytesAreNotLookedAt) {
  auto bytes = TableBuilder(120, 1, 3).put(112, 8, 5).bytes();
  bytes.resize(4096, 0xAB);
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Longer);
  EXPECT_EQ(m.value("indep_throttle_status"), 5);
}

TEST(GpuMetrics, HeaderThatStatesLessThanItsRevisionCutsTheFields) {
  const auto m = decode_gpu_metrics(TableBuilder(120, 1, 3).put(0, 2, 96).put(104, 2, 800).put(88, 8, 0).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.find("voltage_soc"), nullptr);
  EXPECT_EQ(m.find("temperature_hbm")->values, (Values{0, 0, 0, 0}));
  EXPECT_EQ(m.note,
            "the header states 96 bytes, the file has 120; the header states 96 bytes, revision 1.3 has 120: only "
            "fields inside "
            "both are decoded");
}

TEST(GpuMetrics, HeaderThatStatesMoreThanItsRevisionDecodesWhatIsKnown) {
  const auto m = decode_gpu_metrics(TableBuilder(128, 1, 3).put(112, 8, 1).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Longer);
  EXPECT_EQ(m.fields.size(), 43U);
  EXPECT_EQ(m.value("indep_throttle_status"), 1);
  EXPECT_EQ(m.note, "the header states 128 bytes, revision 1.3 has 120: only fields inside both are decoded");
}

TEST(GpuMetrics, NewerRevisionDecodesTheKnownBeginning) {
  const auto m = decode_gpu_metrics(TableBuilder(200, 2, 5).put(4, 2, 6500).put(156, 2, 900).bytes());
  EXPECT_EQ(m.status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(m.note, "revision 2.5 is newer than all known: its beginning is read as 2.4");
  EXPECT_EQ(m.content, 5U);
  EXPECT_EQ(m.value("temperature_gfx"), 6500);
  EXPECT_EQ(m.value("average_gfx_voltage"), 900);
}

TEST(GpuMetrics, NewerRevisionStopsAtTheStatedSizeAndAtTheBytes) {
  const auto stated = decode_gpu_metrics(TableBuilder(264, 3, 1).put(0, 2, 42).put(40, 2, 3100).bytes());
  EXPECT_EQ(stated.status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(stated.value("temperature_skin"), 3100);
  EXPECT_EQ(stated.find("average_gfx_activity"), nullptr);
  auto cut = TableBuilder(264, 3, 9).put(40, 2, 3100).bytes();
  cut.resize(41);
  EXPECT_EQ(decode_gpu_metrics(cut).status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(decode_gpu_metrics(cut).find("temperature_skin"), nullptr);
  EXPECT_NE(decode_gpu_metrics(cut).find("temperature_core"), nullptr);
}

TEST(GpuMetrics, NewerRevisionOfFormat1ThatIsNoStreamIsReadAs1_8) {
  const auto m = decode_gpu_metrics(TableBuilder(3872, 1, 12).put(4, 2, 61).put(3864, 4, 7).bytes());
  EXPECT_EQ(m.status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(m.note, "revision 1.12 is newer than all known: its beginning is read as 1.8");
  EXPECT_EQ(m.value("temperature_hotspot"), 61);
  EXPECT_EQ(m.value("pcie_lc_perf_other_end_recovery"), 7);
}

TEST(GpuMetrics, SentinelIsNullInEveryWidthAndZeroIsAValue) {
  const auto m = decode_gpu_metrics(TableBuilder(80, 1, 0).put(16, 2, 0).put(74, 1, 0).bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.find("temperature_edge")->values, Values{0});
  EXPECT_EQ(m.find("pcie_link_width")->values, Values{0});
  EXPECT_EQ(m.find("pcie_link_speed")->values, Values{kNone});       // u8
  EXPECT_EQ(m.find("temperature_mem")->values, Values{kNone});       // u16
  EXPECT_EQ(m.find("throttle_status")->values, Values{kNone});       // u32
  EXPECT_EQ(m.find("system_clock_counter")->values, Values{kNone});  // u64
  EXPECT_EQ(m.find("system_clock_counter")->raw[0], ULLONG_MAX);
}

TEST(GpuMetrics, ValueJustBelowTheSentinelIsAValue) {
  const auto m = decode_gpu_metrics(TableBuilder(80, 1, 0).put(18, 2, 0xFFFE).put(75, 1, 0xFE).bytes());
  EXPECT_EQ(m.value("temperature_hotspot"), 65534);
  EXPECT_EQ(m.value("pcie_link_speed"), 254);
}

TEST(GpuMetrics, Mi300Revision1_5) {
  TableBuilder table(360, 1, 5);
  table.put(4, 2, 57)
      .put(6, 2, 41)
      .put(10, 2, 612)
      .put(12, 2, 99)
      .put(16, 2, 3)
      .put(104, 4, 0)
      .put(112, 2, 16)
      .put(114, 2, 320);
  table.put(152, 8, 17).put(312, 2, 2100).put(314, 2, 2095).put(352, 2, 1300);
  const auto m = decode_gpu_metrics(table.bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("temperature_hotspot"), 57);
  EXPECT_EQ(m.value("curr_socket_power"), 612);
  EXPECT_EQ(m.value("throttle_status"), 0);
  EXPECT_EQ(m.value("pcie_link_speed"), 320);
  EXPECT_EQ(m.value("pcie_replay_count_acc"), 17);
  EXPECT_EQ(m.value("current_uclk"), 1300);
  EXPECT_EQ(m.find("vcn_activity")->values, (Values{3, kNone, kNone, kNone}));
  EXPECT_EQ(m.find("current_gfxclk")->values, (Values{2100, 2095, kNone, kNone, kNone, kNone, kNone, kNone}));
  EXPECT_EQ(m.find("jpeg_activity")->values.size(), 32U);
}

TEST(GpuMetrics, PartitionStatisticsAreNamedByTheirIndex) {
  TableBuilder table(1664, 1, 6);
  table.put(312, 4, 11).put(316, 4, 12);  // xcp_stats[0].gfx_busy_inst
  table.put(312 + 168, 4, 21);            // xcp_stats[1]
  table.put(312 + 7 * 168, 4, 81);        // xcp_stats[7].gfx_busy_inst
  table.put(1592, 8, 1234567890123U);     // xcp_stats[7].gfx_busy_acc = 416 + 7 * 168
  const auto m = decode_gpu_metrics(table.bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("xcp_stats[0].gfx_busy_inst", 0), 11);
  EXPECT_EQ(m.value("xcp_stats[0].gfx_busy_inst", 1), 12);
  EXPECT_EQ(m.value("xcp_stats[1].gfx_busy_inst"), 21);
  EXPECT_EQ(m.value("xcp_stats[7].gfx_busy_inst"), 81);
  EXPECT_EQ(m.value("xcp_stats[7].gfx_busy_acc"), 1234567890123.0);
  EXPECT_EQ(m.find("xcp_stats[].gfx_busy_inst"), nullptr);
  EXPECT_EQ(m.fields.size(), 73U);
}

TEST(GpuMetrics, CutInsideThePartitionStatisticsKeepsTheEarlierPartitions) {
  auto bytes = TableBuilder(1664, 1, 6).put(312, 4, 11).put(480, 4, 21).bytes();
  bytes.resize(480);
  const auto m = decode_gpu_metrics(bytes);
  EXPECT_EQ(m.status, MetricsStatus::Truncated);
  EXPECT_EQ(m.value("xcp_stats[0].gfx_busy_inst"), 11);
  EXPECT_EQ(m.find("xcp_stats[1].gfx_busy_inst"), nullptr);
  EXPECT_EQ(m.find("pcie_lc_perf_other_end_recovery"), nullptr);
}

TEST(GpuMetrics, StrixRevision3_0) {
  TableBuilder table(264, 3, 0);
  table.put(4, 2, 4512).put(40, 2, 3890).put(42, 2, 37).put(112, 4, 28500).put(174, 2, 2200).put(240, 4, 7);
  const auto m = decode_gpu_metrics(table.bytes());
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("temperature_gfx"), 4512);
  EXPECT_EQ(m.value("temperature_skin"), 3890);
  EXPECT_EQ(m.value("average_socket_power"), 28500);
  EXPECT_EQ(m.value("average_gfxclk_frequency"), 2200);
  EXPECT_EQ(m.value("throttle_residency_sppt"), 7);
  EXPECT_EQ(m.find("temperature_core")->values.size(), 16U);
}

TEST(GpuMetrics, SisterFilesShareNumbersAndAreToldApartByTheCaller) {
  TableBuilder board(120, 1, 0);
  board.put(4, 2, 1).put(6, 2, 0).put(8, 8, 5).put(16, 4, 0x02000028).put(64, 4, 0x00000037);
  const auto m = decode_gpu_metrics(board.bytes(), MetricsFile::GpuBoardTemperature);
  EXPECT_EQ(m.status, MetricsStatus::Ok);
  EXPECT_EQ(m.value("node_temp"), 33554472);  // sensor 2, 40 C
  EXPECT_EQ(m.value("vr_temp"), 55);          // sensor 0, 55 C
  EXPECT_EQ(m.value("node_temp", 1), kNone);
  EXPECT_EQ(m.find("node_temp")->values.size(), 12U);
  EXPECT_EQ(m.find("temperature_edge"), nullptr);
  const auto base =
      decode_gpu_metrics(TableBuilder(144, 1, 0).put(16, 4, 0x0400001E).bytes(), MetricsFile::BaseboardTemperature);
  EXPECT_EQ(base.status, MetricsStatus::Ok);
  EXPECT_EQ(base.value("system_temp"), 67108894);  // sensor 4, 30 C
  const auto partition =
      decode_gpu_metrics(TableBuilder(488, 1, 0).put(4, 2, 1900).put(46, 2, 9).bytes(), MetricsFile::Partition);
  EXPECT_EQ(partition.status, MetricsStatus::Ok);
  EXPECT_EQ(partition.value("current_gfxclk"), 1900);
  EXPECT_EQ(partition.value("padding"), 9);
}

TEST(GpuMetrics, NewerBoardFileIsReadAsTheKnownOne) {
  const auto m =
      decode_gpu_metrics(TableBuilder(120, 1, 1).put(16, 4, 0x01000020).bytes(), MetricsFile::GpuBoardTemperature);
  EXPECT_EQ(m.status, MetricsStatus::UnknownRevision);
  EXPECT_EQ(m.value("node_temp"), 16777248);
}

TEST(GpuMetrics, StatusNamesAreThoseOfTheDocumentation) {
  EXPECT_EQ(to_string(MetricsStatus::Ok), "ok");
  EXPECT_EQ(to_string(MetricsStatus::Truncated), "truncated");
  EXPECT_EQ(to_string(MetricsStatus::Longer), "longer");
  EXPECT_EQ(to_string(MetricsStatus::UnknownRevision), "unknown-revision");
  EXPECT_EQ(to_string(MetricsStatus::Invalid), "invalid");
}

}  // namespace
}  // namespace gpuhealth::telemetry
