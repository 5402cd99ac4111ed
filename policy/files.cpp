// SPDX-License-Identifier: Apache-2.0
#include "policy/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace gpuhealth::policy {
namespace {

std::string relative(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? "." : std::string(path);
}

Result<std::string> read_all(int fd, const std::string& shown, std::size_t most) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(shown, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::InvalidInput, shown + " is not a plain file");
  if (static_cast<std::size_t>(info.st_size) > most)
    return fail(ErrorCode::InvalidInput, shown + " is larger than " + std::to_string(most >> 10U) + " KiB");
  std::string out;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot read " + shown, errno);
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > most)
      return fail(ErrorCode::InvalidInput, shown + " is larger than " + std::to_string(most >> 10U) + " KiB");
  }
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd) != 0) return fail_errno("cannot sync", errno);
  return {};
}

Result<void> sync_folder(int folder) {
  const Fd open(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open || ::fsync(open.get()) != 0) return fail_errno("cannot sync a folder", errno);
  return {};
}

}  // namespace

Result<Root> Root::open(const std::string& path) {
  auto tree = Tree::open(path.empty() ? "/" : path);
  if (!tree) return tl::unexpected<Error>(tree.error());
  return Root(std::move(*tree));
}

std::string Root::shown(std::string_view path) const {
  std::string out = tree_.root();
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  if (out == "/") out.clear();
  return out + (path.starts_with('/') ? "" : "/") + std::string(path);
}

Result<Fd> Root::open_at(const std::string& path, int flags) const {
  return tree_.open_file("/" + relative(path), flags | O_CLOEXEC);
}

Result<std::string> Root::read(const std::string& path, std::size_t most) const {
  if (is_masking_link(path)) return std::string();
  // A pipe or device must not hold us up.
  const auto fd = open_at(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  return read_all(fd->get(), shown(path), most);
}

Result<std::vector<std::string>> Root::list(const std::string& path, std::size_t most) const {
  std::vector<std::string> out;
  auto fd = open_at(path, O_RDONLY | O_DIRECTORY);
  if (!fd && (fd.error().sys_errno == ENOENT || fd.error().sys_errno == ENOTDIR)) return out;
  if (!fd) return tl::unexpected<Error>(fd.error());
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd->release()), ::closedir);
  if (!dir) return fail_errno("cannot read " + shown(path), errno);
  while (const dirent* entry = ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    out.push_back(name);
    if (out.size() > most)
      return fail(ErrorCode::Exhausted, shown(path) + " holds more than " + std::to_string(most) + " files");
  }
  std::ranges::sort(out);
  return out;
}

bool Root::is_masking_link(const std::string& path) const {
  const auto target = read_link(path);
  return target && *target == "/dev/null";
}

Result<std::string> Root::read_link(const std::string& path) const {
  const auto slash = path.rfind('/');
  const auto dir = open_at(slash == std::string::npos ? "." : path.substr(0, slash), O_PATH | O_DIRECTORY);
  if (!dir) return tl::unexpected<Error>(dir.error());
  std::array<char, 4096> target{};
  const ssize_t n = ::readlinkat(dir->get(), path.c_str() + (slash == std::string::npos ? 0 : slash + 1), target.data(),
                                 target.size());
  if (n < 0) return fail_errno(shown(path), errno);
  return std::string(target.data(), static_cast<std::size_t>(n));
}

Result<void> Root::writable_by_owner_only(const std::string& path) const {
  const auto fd = open_at(path, O_PATH);
  struct stat info{};
  if (!fd) return tl::unexpected<Error>(fd.error());
  if (::fstat(fd->get(), &info) != 0) return fail_errno(shown(path), errno);
  if ((info.st_mode & 022U) != 0 || (info.st_uid != 0 && info.st_uid != ::geteuid()))
    return fail(ErrorCode::NotPermitted, "can be changed by others than root");
  return {};
}

Result<Fd> Root::folder(const std::string& path, bool make) const {
  auto found = open_at(path, O_PATH | O_DIRECTORY);
  if (found || !make || found.error().sys_errno != ENOENT) return found;
  const std::string name = relative(path);
  const auto slash = name.rfind('/');
  const auto above =
      slash == std::string::npos ? open_at(".", O_PATH | O_DIRECTORY) : folder(name.substr(0, slash), true);
  if (!above) return tl::unexpected<Error>(above.error());
  if (::mkdirat(above->get(), name.c_str() + (slash == std::string::npos ? 0 : slash + 1), 0755) != 0 &&
      errno != EEXIST)
    return fail_errno("cannot make " + shown(path), errno);
  if (const auto synced = sync_folder(above->get()); !synced) return tl::unexpected<Error>(synced.error());
  return open_at(path, O_PATH | O_DIRECTORY);
}

Result<void> write_file(int folder, const std::string& name, std::string_view bytes, mode_t mode) {
  const std::string beside = "." + name + ".new";
  (void)::unlinkat(folder, beside.c_str(), 0);
  const Fd fd(::openat(folder, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return fail_errno("cannot write " + name, errno);
  (void)::fchmod(fd.get(), mode);
  const auto give_up = [&](Result<void> why) {
    (void)::unlinkat(folder, beside.c_str(), 0);
    return why;
  };
  if (auto done = write_all(fd.get(), bytes); !done) return give_up(std::move(done));
  if (::renameat(folder, beside.c_str(), folder, name.c_str()) != 0)
    return give_up(fail_errno("cannot rename to " + name, errno));
  return sync_folder(folder);
}

Result<void> write_link(int folder, const std::string& name, const std::string& target) {
  const std::string beside = "." + name + ".new";
  (void)::unlinkat(folder, beside.c_str(), 0);
  if (::symlinkat(target.c_str(), folder, beside.c_str()) != 0) return fail_errno("cannot make a link", errno);
  if (::renameat(folder, beside.c_str(), folder, name.c_str()) != 0)
    return fail_errno("cannot rename to " + name, errno);
  return sync_folder(folder);
}

Result<void> append_line(int folder, const std::string& name, std::string_view line, mode_t mode) {
  const Fd fd(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return fail_errno("cannot write " + name, errno);
  return write_all(fd.get(), std::string(line) + "\n");
}

Result<std::string> read_named_file(const std::string& path, std::size_t most, bool follow_links) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow_links ? 0 : O_NOFOLLOW)));
  if (!fd && errno == ELOOP && !follow_links)
    return fail(ErrorCode::InvalidInput, path + " is a link; name the file itself");
  if (!fd) return fail_errno("cannot open " + path, errno);
  return read_all(fd.get(), path, most);
}

}  // namespace gpuhealth::policy
