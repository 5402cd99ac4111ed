// SPDX-License-Identifier: Apache-2.0
// The allow-list of sources.def as a table, and how a row becomes a file of one GPU.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/reading.hpp"

namespace gpuhealth::telemetry {

enum class SourceTier : std::uint8_t { Fast, Slow, Rare };
enum class SourceAccess : std::uint8_t { Wakes, Safe };
enum class SourceParse : std::uint8_t { Integer, Dpm, LinkSpeed, Aer, BadPages, AllOnes, Energy };

struct SourceRow {
  std::string_view file;
  SourceTier tier;
  SourceAccess access;
  SourceParse parse;
  double scale;
  double low;
  double high;
  std::array<ReadingId, 3> ids;  // PlainCount where unused
};

std::span<const SourceRow> source_table();

struct LocatedFile {
  std::string path;   // to open
  std::string shown;  // relative to the device's folder
};
// Null where the GPU lacks what the row names (no hwmon, no such label).
std::optional<LocatedFile> locate(const SourceRow& row, const std::string& device_dir, const std::string& hwmon_dir,
                                  const std::string& card_end);

}  // namespace gpuhealth::telemetry
