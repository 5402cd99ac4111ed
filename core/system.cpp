// SPDX-License-Identifier: Apache-2.0
#include "core/system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace gpuhealth {
namespace {

struct Place {
  Fd folder;
  std::string name;
};

Result<Place> place_of(const Tree& tree, const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
  auto fd = tree.open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  return Place{std::move(*fd), path.substr(slash == std::string::npos ? 0 : slash + 1)};
}

}  // namespace

Result<Fd> System::create(const Tree& tree, const std::string& path, mode_t mode) {
  return tree.open_file(path, O_WRONLY | O_CREAT | O_EXCL, mode);
}

Result<Fd> System::open_to_write(const Tree& tree, const std::string& path) {
  return tree.open_file(path, O_WRONLY);
}

Result<void> System::write_all(const Fd& fd, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot write", errno);
    if (n == 0) return fail_errno("cannot write", ENOSPC);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<void> System::chmod(const Fd& fd, mode_t mode) {
  if (::fchmod(fd.get(), mode) != 0) return fail_errno("cannot set the mode", errno);
  return {};
}

Result<void> System::sync_file(const Fd& fd) {
  if (::fsync(fd.get()) != 0) return fail_errno("cannot sync", errno);
  return {};
}

Result<void> System::sync_folder(const Tree& tree, const std::string& folder) {
  const auto fd = tree.open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  // FAT and some others have nothing to sync in a folder.
  if (::fsync(fd->get()) != 0 && errno != EINVAL) return fail_errno("cannot sync " + folder, errno);
  return {};
}

Result<void> System::sync_file_system(const Tree& tree, const std::string& folder) {
  const auto fd = tree.open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  if (::syncfs(fd->get()) != 0) return fail_errno("cannot sync the file system of " + folder, errno);
  return {};
}

Result<void> System::rename(const Tree& tree, const std::string& from, const std::string& to) {
  const auto a = place_of(tree, from);
  if (!a) return tl::unexpected<Error>(a.error());
  const auto b = place_of(tree, to);
  if (!b) return tl::unexpected<Error>(b.error());
  if (::renameat(a->folder.get(), a->name.c_str(), b->folder.get(), b->name.c_str()) != 0)
    return fail_errno("cannot put " + to + " in place", errno);
  return {};
}

Result<void> System::remove(const Tree& tree, const std::string& path) {
  const auto place = place_of(tree, path);
  if (!place) {
    if (place.error().code == ErrorCode::NotFound) return {};
    return tl::unexpected<Error>(place.error());
  }
  if (::unlinkat(place->folder.get(), place->name.c_str(), 0) != 0 && errno != ENOENT)
    return fail_errno("cannot remove " + path, errno);
  return {};
}

Result<void> System::make_folder(const Tree& tree, const std::string& path, mode_t mode) {
  const auto place = place_of(tree, path);
  if (!place) return tl::unexpected<Error>(place.error());
  if (::mkdirat(place->folder.get(), place->name.c_str(), mode) != 0 && errno != EEXIST)
    return fail_errno("cannot make the folder " + path, errno);
  return {};
}

Result<void> System::write_value(const Tree& tree, const std::string& path, std::string_view value) {
  // sysfs ignores O_TRUNC; in a tree that was copied it takes the old value's tail away.
  const auto fd = tree.open_file(path, O_WRONLY | O_TRUNC);
  if (!fd) return tl::unexpected<Error>(fd.error());
  const ssize_t n = ::write(fd->get(), value.data(), value.size());
  if (n < 0) return fail_errno("cannot write " + path, errno);
  if (static_cast<std::size_t>(n) != value.size()) return fail_errno("only a part was written to " + path, EIO);
  return {};
}

Result<void> System::write_at(const Tree& tree, const std::string& path, std::uint64_t offset, std::string_view bytes) {
  const auto fd = tree.open_file(path, O_WRONLY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  const ssize_t n = ::pwrite(fd->get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (n < 0) return fail_errno("cannot write " + path, errno);
  if (static_cast<std::size_t>(n) != bytes.size()) return fail_errno("only a part was written to " + path, EIO);
  return {};
}

Result<std::string> System::read_that_acts(const Tree& tree, const std::string& path) {
  const auto fd = tree.open_file(path, O_RDONLY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  std::array<char, 256> buffer{};
  const ssize_t n = ::read(fd->get(), buffer.data(), buffer.size());
  if (n < 0) return fail_errno("cannot read " + path, errno);
  return std::string(buffer.data(), static_cast<std::size_t>(n));
}

}  // namespace gpuhealth
