// SPDX-License-Identifier: Apache-2.0
// The sampler's view: the same bytes, without allocation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "telemetry/gpu_metrics.hpp"
#include "tests/telemetry/decoder_support.hpp"

namespace {
std::size_t allocations = 0;
}
void* operator new(std::size_t size) {
  ++allocations;
  if (void* block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept {
  std::free(block);
}

namespace gpuhealth::telemetry {
namespace {

constexpr auto kNone = std::nullopt;

TEST(MetricsView, ReadsACardsTable) {
  CAPTURES_OR_RETURN(dir);
  const auto bytes = read_bytes(dir / "gpu_metrics/lact-rx9070-v1.3/gpu_metrics");
  const MetricsView view(bytes);
  EXPECT_EQ(view.status(), MetricsStatus::Ok);
  EXPECT_EQ(view.format(), 1U);
  EXPECT_EQ(view.content(), 3U);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureEdge), 48U);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureHotspot), 52U);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureMem), 72U);
  EXPECT_EQ(view.raw(MetricsKey::CurrentGfxclk), 900U);
  EXPECT_EQ(view.raw(MetricsKey::AverageUclk), 2238U);
  EXPECT_EQ(view.raw(MetricsKey::AverageSocclk), kNone);
  EXPECT_EQ(view.raw(MetricsKey::AverageSocketPower), 49U);
  EXPECT_EQ(view.raw(MetricsKey::CurrSocketPower), kNone);
  EXPECT_EQ(view.raw(MetricsKey::CurrentFanSpeed), 1944U);
  EXPECT_EQ(view.raw(MetricsKey::VoltageGfx), 790U);
  EXPECT_EQ(view.raw(MetricsKey::ThrottleStatus), 0U);
  EXPECT_EQ(view.raw(MetricsKey::IndepThrottleStatus), 0U);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureSkin), kNone);
}

TEST(MetricsView, TakesTheApusOwnNamesForVoltageAndMedia) {
  const auto vangogh = TableBuilder(168, 2, 4).put(154, 2, 700).put(156, 2, 850).bytes();
  EXPECT_EQ(MetricsView(vangogh).raw(MetricsKey::VoltageSoc), 700U);
  EXPECT_EQ(MetricsView(vangogh).raw(MetricsKey::VoltageGfx), 850U);
  const auto strix = TableBuilder(264, 3, 0).put(44, 2, 12).put(228, 4, 3).bytes();
  EXPECT_EQ(MetricsView(strix).raw(MetricsKey::AverageMmActivity), 12U);
  EXPECT_EQ(MetricsView(strix).raw(MetricsKey::ThrottleResidencyProchot), 3U);
}

TEST(MetricsView, ReadsResidencyAccumulatorsOfMi300) {
  const auto bytes = TableBuilder(2208, 1, 7).put(40, 4, 1000).put(48, 4, 250).put(60, 4, 0).bytes();
  const MetricsView view(bytes);
  EXPECT_EQ(view.raw(MetricsKey::AccumulationCounter), 1000U);
  EXPECT_EQ(view.raw(MetricsKey::PptResidencyAcc), 250U);
  EXPECT_EQ(view.raw(MetricsKey::HbmThmResidencyAcc), 0U);
  EXPECT_EQ(view.raw(MetricsKey::VrThmResidencyAcc), kNone);
  EXPECT_EQ(view.raw(MetricsKey::ThrottleStatus), kNone);
}

TEST(MetricsView, FindsKeysInAStream) {
  const auto bytes =
      StreamBuilder().add(60, 6, {1, 2}).add(0, 2, {45}).add(3, 2, {0xFFFF}).add(33, 2, {2100, 2000}).bytes();
  const MetricsView view(bytes);
  EXPECT_EQ(view.status(), MetricsStatus::Ok);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureHotspot), 45U);
  EXPECT_EQ(view.raw(MetricsKey::CurrSocketPower), kNone);
  EXPECT_EQ(view.raw(MetricsKey::CurrentGfxclk), 2100U);
  EXPECT_EQ(view.raw(MetricsKey::PptResidencyAcc), kNone);
}

TEST(MetricsView, NegativeValueInAStreamIsNone) {
  const auto bytes = StreamBuilder().add(0, 3, {0xFFFB}).bytes();
  EXPECT_EQ(MetricsView(bytes).raw(MetricsKey::TemperatureHotspot), kNone);
}

TEST(MetricsView, CutFieldIsNone) {
  auto bytes = TableBuilder(120, 1, 3).put(4, 2, 40).put(6, 2, 50).bytes();
  bytes.resize(7);
  const MetricsView view(bytes);
  EXPECT_EQ(view.status(), MetricsStatus::Truncated);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureEdge), 40U);
  EXPECT_EQ(view.raw(MetricsKey::TemperatureHotspot), kNone);
}

TEST(MetricsView, NothingInAnInvalidTable) {
  const ByteVector dead(120, 0xFF);
  EXPECT_EQ(MetricsView(dead).status(), MetricsStatus::Invalid);
  for (int key = 0; key <= static_cast<int>(MetricsKey::Count); ++key)
    EXPECT_EQ(MetricsView(dead).raw(static_cast<MetricsKey>(key)), kNone);
  EXPECT_EQ(MetricsView({}).raw(MetricsKey::TemperatureEdge), kNone);
}

TEST(MetricsView, NeverAllocates) {
  const auto table = TableBuilder(120, 1, 3).put(4, 2, 40).bytes();
  const auto stream = StreamBuilder().add(0, 2, {45}).add(3, 2, {600}).bytes();
  const auto before = allocations;
  std::uint64_t sum = 0;
  for (int key = 0; key < static_cast<int>(MetricsKey::Count); ++key) {
    sum += MetricsView(table).raw(static_cast<MetricsKey>(key)).value_or(0);
    sum += MetricsView(stream).raw(static_cast<MetricsKey>(key)).value_or(0);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(sum, 40U + 45U + 600U);
}

}  // namespace
}  // namespace gpuhealth::telemetry
