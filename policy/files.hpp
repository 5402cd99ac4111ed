// SPDX-License-Identifier: Apache-2.0
// Files below a root (/ or a captured tree): links resolve within it, only plain files of bounded size are read, and
// what is written is beside, synced, renamed, with its folder synced.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/tree.hpp"

namespace gpuhealth::policy {

class Root {
 public:
  static Result<Root> open(const std::string& path);
  [[nodiscard]] const std::string& path() const { return tree_.root(); }
  // As people see it: root and path as one.
  [[nodiscard]] std::string shown(std::string_view path) const;

  // "" for what is masked (a link to /dev/null).
  [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t most) const;
  // Names in a folder, sorted; of an absent one none.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path, std::size_t most) const;
  [[nodiscard]] bool is_masking_link(const std::string& path) const;
  // Nobody but the owner, root or us, may change it.
  [[nodiscard]] Result<void> writable_by_owner_only(const std::string& path) const;
  [[nodiscard]] Result<std::string> read_link(const std::string& path) const;
  // O_PATH of a folder; makes it (0755) and those above it where they are absent.
  [[nodiscard]] Result<Fd> folder(const std::string& path, bool make) const;

 private:
  [[nodiscard]] Result<Fd> open_at(const std::string& path, int flags) const;
  explicit Root(Tree tree) : tree_(std::move(tree)) {}
  Tree tree_;
};

// In an open folder.
Result<void> write_file(int folder, const std::string& name, std::string_view bytes, mode_t mode);
Result<void> write_link(int folder, const std::string& name, const std::string& target);  // replaces at once
Result<void> append_line(int folder, const std::string& name, std::string_view line, mode_t mode);

// A file that a person names: no link, a plain file, at most so large.
Result<std::string> read_named_file(const std::string& path, std::size_t most, bool follow_links);

}  // namespace gpuhealth::policy
