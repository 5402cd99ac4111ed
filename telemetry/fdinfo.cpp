// SPDX-License-Identifier: Apache-2.0
#include "telemetry/fdinfo.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "telemetry/parse.hpp"

namespace gpuhealth::telemetry {
namespace {

// "1234 KiB", "5 MiB", "17" (bytes), "99 ns".
std::optional<std::uint64_t> amount(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  const auto unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  const unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : 0;
  if (value > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return value << shift;
}

constexpr std::string_view kEngine = "drm-engine-";
constexpr std::string_view kCapacity = "drm-engine-capacity-";

}  // namespace

DrmFdinfo parse_drm_fdinfo(std::string_view text) {
  DrmFdinfo out;
  std::optional<std::uint64_t> old_vram, old_gtt;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = line.substr(0, colon);
    const auto value = trimmed(line.substr(colon + 1));
    if (key == "drm-driver") out.driver = value;
    if (key == "drm-pdev") out.pci = value;
    if (key == "drm-client-id") out.client_id = value;
    if (key == "drm-memory-vram") old_vram = amount(value);
    if (key == "drm-memory-gtt") old_gtt = amount(value);
    // The words of later kernels; xe calls its regions so as well.
    if (key == "drm-resident-vram" || key == "drm-resident-vram0") out.vram_bytes = amount(value);
    if (key == "drm-resident-gtt") out.gtt_bytes = amount(value);
    if (key == "amd-evicted-vram") out.evicted_bytes = amount(value).value_or(0);
    if (key.starts_with(kEngine) && !key.starts_with(kCapacity)) {
      if (const auto ns = amount(value)) out.engine_ns[std::string(key.substr(kEngine.size()))] = *ns;
    }
  }
  if (!out.vram_bytes) out.vram_bytes = old_vram;
  if (!out.gtt_bytes) out.gtt_bytes = old_gtt;
  return out;
}

}  // namespace gpuhealth::telemetry
