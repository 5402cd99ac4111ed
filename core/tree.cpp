// SPDX-License-Identifier: Apache-2.0
#include "core/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

namespace gpuhealth {

Result<Tree> Tree::open(const std::string& root) {
  const std::string wanted = root.empty() ? "/" : root;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(wanted.c_str(), nullptr), &std::free);
  if (!real) return fail_errno("cannot look at " + wanted, errno);
  Fd fd(::open(real.get(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno("cannot look at " + wanted, errno);
  return Tree(real.get(), std::move(fd));
}

int Tree::open_below(std::string_view path, int flags, mode_t mode) const {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::string relative = path.empty() ? "." : std::string(path);
  open_how how{};
  how.flags = static_cast<__u64>(flags) | O_CLOEXEC;
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long fd = 0;
  do {
    fd = ::syscall(SYS_openat2, fd_.get(), relative.c_str(), &how, sizeof how);
  } while (fd < 0 && errno == EAGAIN);
  // An old kernel or a sandbox without openat2; on the running system links mean the same.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM) && running())
    fd = ::openat(fd_.get(), relative.c_str(), flags | O_CLOEXEC, mode);
  return static_cast<int>(fd);
}

Result<Fd> Tree::open_file(std::string_view path, int flags, mode_t mode) const {
  Fd fd(open_below(path, flags, mode));
  if (fd) return fd;
  const int error = errno;
  return fail_errno("cannot open " + std::string(path) + (running() ? "" : " in " + root_), error);
}

Result<std::string> Tree::read(std::string_view path, std::size_t limit) const {
  auto fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0) return fail_errno("cannot read " + std::string(path), errno);
  if (S_ISDIR(info.st_mode)) return fail_errno("cannot read " + std::string(path), EISDIR);
  std::string out;
  std::string buffer(65536, '\0');
  while (true) {
    const ssize_t n = ::read(fd->get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read " + std::string(path), errno);
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > limit)
      return fail(ErrorCode::InvalidInput, std::string(path) + " is larger than anything that belongs there");
  }
}

std::optional<struct stat> Tree::stat(std::string_view path) const {
  const Fd fd(open_below(path, O_PATH, 0));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  return info;
}

bool Tree::is_file(std::string_view path) const {
  const auto info = stat(path);
  return info && S_ISREG(info->st_mode);
}

bool Tree::is_folder(std::string_view path) const {
  const auto info = stat(path);
  return info && S_ISDIR(info->st_mode);
}

std::vector<std::string> Tree::list(std::string_view folder) const {
  std::vector<std::string> out;
  Fd fd(open_below(folder, O_RDONLY | O_DIRECTORY, 0));
  if (!fd) return out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), &::closedir);
  if (!dir) return out;
  (void)fd.release();
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

std::optional<std::string> Tree::resolve(std::string_view path) const {
  const Fd fd(open_below(path, O_PATH, 0));
  if (!fd) return std::nullopt;
  std::string buffer(PATH_MAX, '\0');
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), buffer.data(), buffer.size());
  if (n <= 0) return std::nullopt;
  buffer.resize(static_cast<std::size_t>(n));
  if (running()) return buffer;
  if (buffer == root_) return "/";
  if (!buffer.starts_with(root_ + "/")) return std::nullopt;
  return buffer.substr(root_.size());
}

}  // namespace gpuhealth
