// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics_units.hpp"

#include <array>

#include "telemetry/quirks.hpp"

namespace gpuhealth::telemetry {
namespace {

enum class Quantity : std::uint8_t { Plain, Temperature, Activity, SocketPower, LinkSpeed };

Quantity quantity_of(MetricsKey key) {
  switch (key) {
    case MetricsKey::TemperatureEdge:
    case MetricsKey::TemperatureHotspot:
    case MetricsKey::TemperatureMem:
    case MetricsKey::TemperatureVrGfx:
    case MetricsKey::TemperatureVrSoc:
    case MetricsKey::TemperatureVrMem:
    case MetricsKey::TemperatureGfx:
    case MetricsKey::TemperatureSoc:
    case MetricsKey::TemperatureSkin:
      return Quantity::Temperature;
    case MetricsKey::AverageGfxActivity:
    case MetricsKey::AverageUmcActivity:
    case MetricsKey::AverageMmActivity:
      return Quantity::Activity;
    case MetricsKey::AverageSocketPower:
      return Quantity::SocketPower;
    case MetricsKey::PcieLinkSpeed:
      return Quantity::LinkSpeed;
    default:
      return Quantity::Plain;
  }
}

double power_scale(unsigned format, unsigned content, AsicFamily family) {
  if (format < 2) return 1.0;
  const bool sure = format > 2 || content >= 4;
  return !sure && quirk_applies(QuirkId::SocketPowerInWatts, family) ? 1.0 : 0.001;
}

struct SpeedRow {
  std::uint64_t raw;  // 0.1 GT/s
  double gts;
};
constexpr std::array<SpeedRow, 6> kSpeeds = {{{25, 2.5}, {50, 5.0}, {80, 8.0}, {160, 16.0}, {320, 32.0}, {640, 64.0}}};

}  // namespace

double metrics_scale(MetricsKey key, unsigned format, unsigned content, AsicFamily family) {
  switch (quantity_of(key)) {
    case Quantity::Temperature:
      return format < 2 ? 1.0 : 0.01;
    case Quantity::Activity:
      return format < 2 || quirk_applies(QuirkId::ActivityInPercent, family) ? 1.0 : 0.01;
    case Quantity::SocketPower:
      return power_scale(format, content, family);
    case Quantity::LinkSpeed:
      return 0.1;
    case Quantity::Plain:
      break;
  }
  return 1.0;
}

std::optional<double> link_speed_gts(std::uint64_t raw, AsicFamily family) {
  if (raw >= 1 && raw <= kSpeeds.size()) return kSpeeds.at(raw - 1).gts;
  if (raw == kSpeeds.front().raw && quirk_applies(QuirkId::LinkSpeedGen5Clamp, family)) return std::nullopt;
  for (const auto& row : kSpeeds) {
    if (row.raw == raw) return row.gts;
  }
  return std::nullopt;
}

}  // namespace gpuhealth::telemetry
