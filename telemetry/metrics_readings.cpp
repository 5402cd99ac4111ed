// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics_readings.hpp"

#include <utility>

#include "telemetry/metrics_units.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr std::array kRows = std::to_array<MetricsReadingRow>({
    {ReadingId::TemperatureEdge, MetricsKey::TemperatureEdge, 1, 150},
    {ReadingId::TemperatureJunction, MetricsKey::TemperatureHotspot, 1, 150},
    {ReadingId::TemperatureMemory, MetricsKey::TemperatureMem, 1, 150},
    {ReadingId::TemperatureVrGfx, MetricsKey::TemperatureVrGfx, 1, 150},
    {ReadingId::TemperatureVrSoc, MetricsKey::TemperatureVrSoc, 1, 150},
    {ReadingId::TemperatureVrMemory, MetricsKey::TemperatureVrMem, 1, 150},
    {ReadingId::TemperatureGfx, MetricsKey::TemperatureGfx, 1, 150},
    {ReadingId::TemperatureSoc, MetricsKey::TemperatureSoc, 1, 150},
    {ReadingId::TemperatureSkin, MetricsKey::TemperatureSkin, 1, 150},
    {ReadingId::ClockGfx, MetricsKey::CurrentGfxclk, 0, 10000},
    {ReadingId::ClockGfx, MetricsKey::AverageGfxclk, 0, 10000},
    {ReadingId::ClockMemory, MetricsKey::CurrentUclk, 0, 10000},
    {ReadingId::ClockMemory, MetricsKey::AverageUclk, 0, 10000},
    {ReadingId::ClockSoc, MetricsKey::CurrentSocclk, 0, 10000},
    {ReadingId::ClockSoc, MetricsKey::AverageSocclk, 0, 10000},
    {ReadingId::ClockFabric, MetricsKey::CurrentFclk, 0, 10000},
    {ReadingId::ClockFabric, MetricsKey::AverageFclk, 0, 10000},
    {ReadingId::UtilizationGfx, MetricsKey::AverageGfxActivity, 0, 100},
    {ReadingId::UtilizationMemory, MetricsKey::AverageUmcActivity, 0, 100},
    {ReadingId::UtilizationMedia, MetricsKey::AverageMmActivity, 0, 100},
    {ReadingId::FanRpm, MetricsKey::CurrentFanSpeed, 1, 30000},
    {ReadingId::VoltageGfx, MetricsKey::VoltageGfx, 1, 3000},
    {ReadingId::VoltageSoc, MetricsKey::VoltageSoc, 1, 3000},
    {ReadingId::VoltageMemory, MetricsKey::VoltageMem, 1, 3000},
    {ReadingId::PcieWidth, MetricsKey::PcieLinkWidth, 1, 32},
    {ReadingId::PcieSpeed, MetricsKey::PcieLinkSpeed, 2.5, 256},
    {ReadingId::PcieReplays, MetricsKey::PcieReplayCountAcc, 0, 1e18},
});

// The first counts all samples; the others those in which that limiter was active.
constexpr std::array kResidency = {MetricsKey::AccumulationCounter, MetricsKey::ProchotResidencyAcc,
                                   MetricsKey::PptResidencyAcc,     MetricsKey::SocketThmResidencyAcc,
                                   MetricsKey::VrThmResidencyAcc,   MetricsKey::HbmThmResidencyAcc};
constexpr std::array kShareIds = {ReadingId::ThrottleProchotShare, ReadingId::ThrottlePowerShare,
                                  ReadingId::ThrottleSocketThermalShare, ReadingId::ThrottleVrThermalShare,
                                  ReadingId::ThrottleHbmThermalShare};

}  // namespace

std::span<const MetricsReadingRow> metrics_reading_table() {
  return kRows;
}

std::optional<double> metrics_reading(const MetricsView& view, const MetricsReadingRow& row, AsicFamily family) {
  const auto raw = view.raw(row.key);
  if (!raw) return std::nullopt;
  const auto value =
      row.key == MetricsKey::PcieLinkSpeed
          ? link_speed_gts(*raw, family)
          : std::optional(static_cast<double>(*raw) * metrics_scale(row.key, view.format(), view.content(), family));
  if (!value || *value < row.low || *value > row.high) return std::nullopt;
  return value;
}

std::span<const ResidencyShares::Share> ResidencyShares::update(const MetricsView& view) {
  std::array<std::optional<std::uint64_t>, kResidency.size()> now;
  for (std::size_t i = 0; i < kResidency.size(); ++i) now[i] = view.raw(kResidency[i]);
  const auto last = std::exchange(last_, now);
  if (!now[0] || !last[0] || *now[0] <= *last[0]) return {};
  const auto samples = static_cast<double>(*now[0] - *last[0]);
  std::size_t n = 0;
  for (std::size_t i = 1; i < kResidency.size(); ++i) {
    if (!now[i] || !last[i] || *now[i] < *last[i]) continue;
    const double percent = 100.0 * static_cast<double>(*now[i] - *last[i]) / samples;
    if (percent <= 100.0) shares_[n++] = {kShareIds[i - 1], percent};
  }
  return {shares_.data(), n};
}

}  // namespace gpuhealth::telemetry
