// SPDX-License-Identifier: Apache-2.0
// The text formats of amdgpu's and the PCI core's sysfs files. Each takes what was read (trailing newline, blanks and
// NULs allowed) and returns nothing for text that is not of its format. Sources: amdgpu_pm.c, amdgpu_ras.c,
// drivers/pci.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sample.hpp"

namespace gpuhealth::telemetry {

// Cuts at the first NUL (saved files are padded with them) and trims white space at both ends.
std::string_view trimmed(std::string_view text);

std::optional<std::int64_t> parse_integer(std::string_view text);  // "-273150\n"
std::optional<std::uint32_t> parse_hex(std::string_view text);     // "0x744c\n"

// "16.0 GT/s PCIe" -> 16.0; "Unknown" and the older "Unknown speed" -> nothing.
std::optional<double> parse_link_speed(std::string_view text);

// pp_dpm_sclk and its like: "0: 500Mhz", "1: 31Mhz *", "S: 19Mhz *" (deep sleep). Values in MHz.
struct DpmTable {
  struct Level {
    bool deep_sleep = false;  // the line begins with "S"
    double mhz = 0;
    bool current = false;
  };
  std::vector<Level> levels;  // in file order
};
std::optional<DpmTable> parse_dpm_table(std::string_view text);
// The same without allocating: first, last and current level; null where the table has none.
struct DpmSummary {
  std::optional<double> current, lowest, highest;
};
std::optional<DpmSummary> summarise_dpm(std::string_view text);

// aer_dev_*: the number on the TOTAL_ERR_* line, else the sum of the others. Sum and total differ by design (messages,
// bits).
std::optional<std::uint64_t> parse_aer_total(std::string_view text);
std::vector<std::pair<std::string, std::uint64_t>> parse_aer(std::string_view text);

// ras/*_err_count: "ue: 0", "ce: 3", since 6.12 "de: 0", in any number and order. Null for "Query currently
// inaccessible".
struct RasCounts {
  std::optional<std::uint64_t> correctable, uncorrectable, deferred;
};
std::optional<RasCounts> parse_ras_counts(std::string_view text);

// pp_power_profile_mode: the name of the row with the star, without it. Formats differ by ASIC; the star is common to
// all.
std::optional<std::string> parse_power_profile(std::string_view text);

PowerState parse_runtime_status(
    std::string_view text);  // "unsupported" and "error" are Active: runtime PM is out of use

}  // namespace gpuhealth::telemetry
