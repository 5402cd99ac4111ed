// SPDX-License-Identifier: Apache-2.0
// The files of a machine, running ("/") or not: every path, and every symbolic link in it, stays below the root, as
// after chroot (openat2 with RESOLVE_IN_ROOT).
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace gpuhealth {

class Tree {
 public:
  static Result<Tree> open(const std::string& root);

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] bool running() const { return root_ == "/"; }

  // `flags` as for open(2). Fails with the errno, and says which path of which root.
  [[nodiscard]] Result<Fd> open_file(std::string_view path, int flags, mode_t mode = 0) const;
  [[nodiscard]] Result<std::string> read(std::string_view path, std::size_t limit = std::size_t{16} << 20) const;
  [[nodiscard]] std::optional<struct stat> stat(std::string_view path) const;  // follows links
  [[nodiscard]] bool is_file(std::string_view path) const;
  [[nodiscard]] bool is_folder(std::string_view path) const;
  // Names in a folder, sorted bytewise; empty when there is none.
  [[nodiscard]] std::vector<std::string> list(std::string_view folder) const;
  // Where links lead: the path below the root, of something that exists.
  [[nodiscard]] std::optional<std::string> resolve(std::string_view path) const;

 private:
  Tree(std::string root, Fd fd) : root_(std::move(root)), fd_(std::move(fd)) {}
  [[nodiscard]] int open_below(std::string_view path, int flags, mode_t mode) const;

  std::string root_;
  Fd fd_;
};

}  // namespace gpuhealth
