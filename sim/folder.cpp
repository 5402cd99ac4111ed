// SPDX-License-Identifier: Apache-2.0
#include "sim/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/fd.hpp"

namespace gpuhealth::sim {
namespace fs = std::filesystem;

Result<void> write_in_place(const fs::path& path, std::string_view bytes) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return fail_errno("cannot write " + path.string(), errno);
  const ssize_t written = ::pwrite(fd.get(), bytes.data(), bytes.size(), 0);
  if (written < 0) return fail_errno("cannot write " + path.string(), errno);
  if (static_cast<std::size_t>(written) != bytes.size())
    return fail(ErrorCode::Exhausted, path.string() + ": disk full");
  if (::ftruncate(fd.get(), written) != 0) return fail_errno("cannot cut " + path.string(), errno);
  return {};
}

void Folder::dir(const fs::path& path) {
  std::error_code error;
  fs::create_directories(root_ / path, error);
  if (error) note(fail_errno("cannot create " + (root_ / path).string(), error.value()));
}

void Folder::file(const fs::path& path, std::string_view bytes) {
  if (fs::path parent = path.parent_path(); parent != last_parent_) {
    dir(parent);
    last_parent_ = std::move(parent);
  }
  note(write_in_place(root_ / path, bytes));
}

void Folder::link(const fs::path& path, const fs::path& target) {
  dir(path.parent_path());
  std::error_code error;
  fs::remove(root_ / path, error);
  fs::create_symlink(target.lexically_relative(path.parent_path()), root_ / path, error);
  if (error) note(fail_errno("cannot link " + (root_ / path).string(), error.value()));
}

}  // namespace gpuhealth::sim
