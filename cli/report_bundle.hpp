// SPDX-License-Identifier: Apache-2.0
// A report as one file for a bug report or a returned card.
#pragma once

#include "cli/report.hpp"
#include "core/error.hpp"

namespace gpuhealth::cli {

struct PackedFile {
  std::string name;
  std::string text;
};
// `path` ends in .tar.zst; written beside, then renamed.
Result<void> write_bundle(const std::string& path, const std::vector<PackedFile>& files, WallTime made);

// The contents, without the names of this host, its users and its single cards unless `keep_names`.
std::vector<PackedFile> bundle_files(const Report& report, bool keep_names);

// This host and the people that have accounts on it.
void add_names(Masks& masks);

// Beside, then renamed.
Result<void> write_whole(const std::string& path, const std::string& text);

}  // namespace gpuhealth::cli
