// SPDX-License-Identifier: Apache-2.0
// Where the captured data of real machines lies: GPUHEALTH_CAPTURES, else ../shared/captures beside the source tree.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "tests/paths.hpp"

inline std::optional<std::filesystem::path> captures_dir() {
  const char* named = std::getenv("GPUHEALTH_CAPTURES");
  const auto dir = named != nullptr && *named != '\0'
                       ? std::filesystem::path(named)
                       : std::filesystem::path(GPUHEALTH_SOURCE_DIR).parent_path() / "shared" / "captures";
  std::error_code ec;
  if (!std::filesystem::is_directory(dir, ec)) return std::nullopt;
  return dir;
}
