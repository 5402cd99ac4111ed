// SPDX-License-Identifier: Apache-2.0
// The database's files on disk: made with the right modes, set aside when damaged, measured.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace gpuhealth::store {

inline constexpr int kDamagedKept = 3;

// Makes the directory (0750) and an empty file (0640) where they are absent, and takes away wider modes of the file.
// `empty`: the file has no content, which SQLite takes as a new database.
Result<void> prepare_file(const std::string& path, bool& empty);

// The file ends within a page, and there is no write-ahead log that could hold the rest. SQLite reads the missing bytes
// as zeros.
bool is_cut(const std::string& path);

// Renames PATH to the first free PATH.damaged-N after those that exist, its -wal and -shm beside it, and removes the
// oldest beyond kDamagedKept. Returns the new name.
Result<std::string> set_aside(const std::string& path);

std::uint64_t size_on_disk(const std::string& path);  // with its -wal; 0 when absent

}  // namespace gpuhealth::store
