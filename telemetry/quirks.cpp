// SPDX-License-Identifier: Apache-2.0
#include "telemetry/quirks.hpp"

#include <array>
#include <charconv>
#include <compare>
#include <optional>

namespace gpuhealth::telemetry {
namespace {

constexpr std::uint32_t bit_of(AsicFamily family) {
  return std::uint32_t{1} << static_cast<unsigned>(family);
}
constexpr std::uint32_t kAllFamilies = ~std::uint32_t{0};

constexpr std::array kQuirks = std::to_array<Quirk>({
#define F(name) bit_of(AsicFamily::name)
#define QUIRK(id, families, kernels, what, source) {QuirkId::id, #id, families, kernels, what, source},
#include "telemetry/quirks.def"
#undef QUIRK
#undef F
});

struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

std::optional<KernelVersion> parse_version(std::string_view text) {
  KernelVersion out;
  const auto* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, out.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  if (std::from_chars(major.ptr + 1, end, out.minor).ec != std::errc{}) return std::nullopt;
  return out;
}

// One of ">=X.Y" and "<X.Y".
bool holds(std::string_view comparison, KernelVersion kernel) {
  const bool below = comparison.starts_with('<');
  const auto limit = parse_version(comparison.substr(below ? 1 : 2));
  if (!limit) return false;
  return below ? kernel < *limit : kernel >= *limit;
}

bool in_range(std::string_view range, std::string_view release) {
  const auto kernel = parse_version(release);
  if (!kernel) return true;
  while (!range.empty()) {
    const auto space = range.find(' ');
    if (!holds(range.substr(0, space), *kernel)) return false;
    range = space == std::string_view::npos ? std::string_view{} : range.substr(space + 1);
  }
  return true;
}

}  // namespace

std::span<const Quirk> all_quirks() {
  return kQuirks;
}

const Quirk& find_quirk(QuirkId id) {
  return kQuirks.at(static_cast<std::size_t>(id));
}

bool quirk_applies(QuirkId id, AsicFamily family) {
  return (find_quirk(id).families & bit_of(family)) != 0;
}

bool quirk_applies(QuirkId id, AsicFamily family, std::string_view kernel_release) {
  return quirk_applies(id, family) && in_range(find_quirk(id).kernels, kernel_release);
}

}  // namespace gpuhealth::telemetry
