// SPDX-License-Identifier: Apache-2.0
#include "telemetry/throttle_map.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "telemetry/quirks.hpp"

namespace gpuhealth::telemetry {
namespace {

struct BitRow {
  std::uint8_t bit;
  ThrottleReason reason;
};
using enum ThrottleReason;
#define THROTTLE_MAP(name, source, ...) constexpr BitRow kBits##name[] = {__VA_ARGS__};
#include "telemetry/throttle_bits.def"
#undef THROTTLE_MAP

struct FamilyMap {
  AsicFamily family;
  std::span<const BitRow> bits;
};
constexpr FamilyMap kFamilyMaps[] = {
    {AsicFamily::Navi1x, kBitsNavi1x},       {AsicFamily::Navi2x, kBitsNavi2x},
    {AsicFamily::Navi3x, kBitsNavi3x},       {AsicFamily::Navi4x, kBitsNavi4x},
    {AsicFamily::Arcturus, kBitsArcturus},   {AsicFamily::Aldebaran, kBitsAldebaran},
    {AsicFamily::ApuRenoir, kBitsApuCommon}, {AsicFamily::ApuVangogh, kBitsVangogh},
    {AsicFamily::ApuRdna2, kBitsApuCommon},  {AsicFamily::ApuRdna3, kBitsApuCommon},
};

// What else must be seen before a bit is believed.
enum class SecondSign : std::uint8_t { JunctionNearCritical, PowerNearCap, AsicMask };
struct Gate {
  QuirkId quirk;
  ThrottleReason reason;
  SecondSign sign;
};
constexpr Gate kGates[] = {
    {QuirkId::TempHotspotAlwaysSet, TempHotspot, SecondSign::JunctionNearCritical},
    {QuirkId::PptFlicker, Ppt0, SecondSign::PowerNearCap},
    {QuirkId::PptFlicker, Ppt1, SecondSign::PowerNearCap},
    {QuirkId::PptFlicker, Ppt2, SecondSign::PowerNearCap},
    {QuirkId::PptFlicker, Ppt3, SecondSign::PowerNearCap},
    {QuirkId::IndepPpt0Alias, Ppt0, SecondSign::AsicMask},
};
constexpr double kNearCriticalCelsius =
    5.0;  // firmware throttles at the limit and holds the die a few degrees below it
constexpr double kNearCapShare = 0.9;

std::span<const BitRow> map_of(AsicFamily family) {
  const auto* at = std::ranges::find(kFamilyMaps, family, &FamilyMap::family);
  return at == std::end(kFamilyMaps) ? std::span<const BitRow>{} : at->bits;
}

ThrottleSet reasons_of(std::span<const BitRow> bits, std::uint64_t status) {
  ThrottleSet out;
  for (const auto& row : bits) {
    if ((status >> row.bit & 1) != 0) out.insert(row.reason);
  }
  return out;
}

bool is_seen(SecondSign sign, const ThrottleInput& input, bool from_asic_mask) {
  switch (sign) {
    case SecondSign::JunctionNearCritical:
      return input.junction_celsius && input.junction_critical_celsius &&
             *input.junction_celsius >= *input.junction_critical_celsius - kNearCriticalCelsius;
    case SecondSign::PowerNearCap:
      return input.power_watt && input.power_cap_watt && *input.power_cap_watt > 0 &&
             *input.power_watt >= kNearCapShare * *input.power_cap_watt;
    case SecondSign::AsicMask:
      return from_asic_mask;
  }
  return false;
}

void close_gates(ThrottleOutput& out, const ThrottleInput& input, bool from_asic_mask) {
  for (const auto& gate : kGates) {
    if (!out.believed.contains(gate.reason) || !quirk_applies(gate.quirk, input.family)) continue;
    if (is_seen(gate.sign, input, from_asic_mask)) continue;
    out.believed.erase(gate.reason);
    out.gated.insert(gate.reason);
  }
}

}  // namespace

ThrottleOutput decode_throttle(const ThrottleInput& input) {
  ThrottleOutput out;
  if (quirk_applies(QuirkId::ThrottleStatusConstantZero, input.family)) return out;
  const auto bits = map_of(input.family);
  const bool from_asic_mask = input.asic_status && !bits.empty();
  if (from_asic_mask)
    out.believed = reasons_of(bits, *input.asic_status);
  else if (input.indep_status)
    out.believed = reasons_of(kBitsIndep, *input.indep_status);
  else
    return out;
  out.known = true;
  close_gates(out, input, from_asic_mask);
  return out;
}

}  // namespace gpuhealth::telemetry
