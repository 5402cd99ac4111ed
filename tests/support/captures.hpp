// SPDX-License-Identifier: Apache-2.0
// Where the captured data of real machines lies: GPUHEALTH_CAPTURES, else ../shared/captures beside the source tree.
#pragma once

#include <gtest/gtest.h>

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

// In a test's body or SetUp: `dir` becomes the folder of captures. They are other people's data and not in this
// repository, so without them the test is skipped, said and counted; where they are required (CI) it fails.
#define CAPTURES_OR_RETURN(dir)                                                               \
  const auto captures_found = captures_dir();                                                 \
  if (!captures_found) {                                                                      \
    if (std::getenv("CI") != nullptr || std::getenv("GPUHEALTH_REQUIRE_CAPTURES") != nullptr) \
      FAIL() << "no captures of real machines: set GPUHEALTH_CAPTURES";                       \
    GTEST_SKIP() << "no captures of real machines: set GPUHEALTH_CAPTURES";                   \
  }                                                                                           \
  const std::filesystem::path& dir = *captures_found
