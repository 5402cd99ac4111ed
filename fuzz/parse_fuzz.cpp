// SPDX-License-Identifier: Apache-2.0
// Any bytes as each text format of sysfs.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "fuzz/require.hpp"
#include "telemetry/intel.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/ras.hpp"

namespace {

using namespace gpuhealth::telemetry;

void check_dpm(std::string_view text) {
  const auto table = parse_dpm_table(text);
  const auto summary = summarise_dpm(text);
  if (!table) return require(!summary, "no table, no summary");
  std::optional<double> current, lowest, highest;
  for (const auto& level : table->levels) {
    require(std::isfinite(level.mhz), "a clock is a number");
    if (level.current && !current) current = level.mhz;
    if (level.deep_sleep && level.current) continue;  // the clock now, below all levels
    if (!lowest) lowest = level.mhz;
    highest = level.mhz;
  }
  const bool zeros = highest && *highest == 0;  // a table of zeros is none
  require(summary.has_value() == (lowest && !zeros), "a table with levels has a summary");
  if (!summary) return;
  require(summary->lowest == lowest && summary->highest == highest, "same first and last level");
  require(summary->current == current, "same current level");
}

void check_aer(std::string_view text) {
  const auto counts = parse_aer(text);
  const auto total = parse_aer_total(text);
  require(!total || !counts.empty(), "a total is of counts");
  for (const auto& [name, count] : counts) require(!name.empty(), "a count has a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An exact allocation: one byte further is the sanitizer's.
  const auto copy = std::make_unique<char[]>(size);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::string_view text(copy.get(), size);
  const auto cut = trimmed(text);
  require(cut.size() <= size && trimmed(cut) == cut, "trimmed once is trimmed");
  require(parse_integer(text) == parse_integer(cut), "white space around a number says nothing");
  require(parse_hex(text) == parse_hex(cut), "white space around a hex number says nothing");
  if (const auto speed = parse_link_speed(text)) require(std::isfinite(*speed), "a speed is a number");
  check_dpm(text);
  check_aer(text);
  (void)parse_ras_counts(text);
  (void)parse_ras_events(text);
  if (const auto pages = parse_bad_pages(text)) require(pages->total() <= size / 3, "a page takes a line");
  if (const auto profile = parse_power_profile(text)) require(!profile->empty(), "a profile has a name");
  (void)parse_runtime_status(text);
  (void)intel_reason(text);
  if (const auto counter = intel_error_counter(text))
    require(counter->block < gpuhealth::kRasBlocks.size(), "a counter has a block");
  return 0;
}
