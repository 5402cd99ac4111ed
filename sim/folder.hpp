// SPDX-License-Identifier: Apache-2.0
// Writes files and relative links below one folder; keeps the first error, so that a long list needs one check.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/error.hpp"

namespace gpuhealth::sim {

// Replaces the content in place: same inode, never empty in between.
Result<void> write_in_place(const std::filesystem::path& path, std::string_view bytes);

class Folder {
 public:
  explicit Folder(std::filesystem::path root) : root_(std::move(root)) {}

  void dir(const std::filesystem::path& path);
  void file(const std::filesystem::path& path, std::string_view bytes);
  // A link at `path` that points to `target`, both relative to the root.
  void link(const std::filesystem::path& path, const std::filesystem::path& target);

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] Result<void> result() const { return result_; }

 private:
  void note(Result<void> result) {
    if (result_ && !result) result_ = std::move(result);
  }
  std::filesystem::path root_;
  std::filesystem::path last_parent_;
  Result<void> result_;
};

}  // namespace gpuhealth::sim
