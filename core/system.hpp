// SPDX-License-Identifier: Apache-2.0
// The system calls that change files, behind one door, so that a test can let any of them fail. Paths are below a
// tree's root, links included. Errors are errno values in the Result.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/tree.hpp"

namespace gpuhealth {

class System {
 public:
  virtual ~System() = default;
  virtual Result<Fd> create(const Tree& tree, const std::string& path, mode_t mode);  // new, else EEXIST
  virtual Result<Fd> open_to_write(const Tree& tree, const std::string& path);        // neither made nor cut
  virtual Result<void> write_all(const Fd& fd, std::string_view bytes);               // from the start of the file
  virtual Result<void> chmod(const Fd& fd, mode_t mode);                              // whatever the umask
  virtual Result<void> sync_file(const Fd& fd);
  virtual Result<void> sync_folder(const Tree& tree, const std::string& folder);
  virtual Result<void> sync_file_system(const Tree& tree, const std::string& folder);
  virtual Result<void> rename(const Tree& tree, const std::string& from, const std::string& to);
  virtual Result<void> remove(const Tree& tree, const std::string& path);                    // absent: no error
  virtual Result<void> make_folder(const Tree& tree, const std::string& path, mode_t mode);  // there: no error

  // Files that act when they are written or read, as those of /sys do: one system call each, never a second one for a
  // rest.
  virtual Result<void> write_value(const Tree& tree, const std::string& path, std::string_view value);
  virtual Result<void> write_at(const Tree& tree, const std::string& path, std::uint64_t offset,
                                std::string_view bytes);
  virtual Result<std::string> read_that_acts(const Tree& tree, const std::string& path);
};

}  // namespace gpuhealth
