// SPDX-License-Identifier: Apache-2.0
// What the hardware says and does not mean: one table of quirks, gated by ASIC family and kernel, each with its source
// (quirks.def; docs/gpu-metrics.md is checked against it).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/device.hpp"

namespace gpuhealth::telemetry {

enum class QuirkId : std::uint8_t {
#define QUIRK(id, families, kernels, what, source) id,
#include "telemetry/quirks.def"
#undef QUIRK
  Count,
};

struct Quirk {
  QuirkId id;
  std::string_view name;     // "TempHotspotAlwaysSet"
  std::uint32_t families;    // bit N: AsicFamily N
  std::string_view kernels;  // "" for all, else comparisons that all hold: ">=6.2 <6.3"
  std::string_view what;
  std::string_view source;
};
std::span<const Quirk> all_quirks();
const Quirk& find_quirk(QuirkId id);

// On some kernel.
bool quirk_applies(QuirkId id, AsicFamily family);
// On this kernel ("6.1.0-28-amd64"); a release that cannot be read counts as affected.
bool quirk_applies(QuirkId id, AsicFamily family, std::string_view kernel_release);

}  // namespace gpuhealth::telemetry
