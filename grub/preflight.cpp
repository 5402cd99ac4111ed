// SPDX-License-Identifier: Apache-2.0
#include "grub/preflight.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>

namespace gpuhealth::grub {
namespace {

constexpr unsigned long kRoom = 4UL << 20;  // two menus and a ledger entry are far smaller

bool secure_boot(const Tree& tree) {
  const auto bytes = tree.read("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 4096);
  return bytes && bytes->size() >= 5 && (*bytes)[4] == '\1';  // behind four bytes of attributes
}

// fstab has a line for /boot, and /boot is on the root's file system all the same.
bool boot_is_not_mounted(const Tree& tree) {
  if (!tree.running()) return false;
  const auto root = tree.stat("/");
  const auto boot = tree.stat("/boot");
  if (!root || !boot || root->st_dev != boot->st_dev) return false;
  const auto text = tree.read("/etc/fstab", std::size_t{1} << 20);
  if (!text) return false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with('#')) continue;
    const auto blank = line.find_first_of(" \t");
    const auto begin = blank == std::string_view::npos ? blank : line.find_first_not_of(" \t", blank);
    if (begin == std::string_view::npos) continue;
    const std::string_view place = line.substr(begin, line.find_first_of(" \t", begin) - begin);
    if (place == "/boot") return true;
  }
  return false;
}

bool package_manager_works(const Tree& tree) {
  static constexpr std::array<std::string_view, 3> kLocks = {"/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend",
                                                             "/var/lib/rpm/.rpm.lock"};
  for (const std::string_view path : kLocks) {
    const auto fd = tree.open_file(path, O_RDWR | O_NONBLOCK);
    if (!fd) continue;
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (::fcntl(fd->get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
  }
  return false;
}

}  // namespace

Result<void> check_kernel(const Tree& tree, const Inventory& inventory, const std::string& release) {
  const Kernel* kernel = find_kernel(inventory, release);
  if (kernel == nullptr) {
    std::string known;
    for (const Kernel& one : inventory.kernels) known += (known.empty() ? "" : ", ") + one.release;
    return fail(ErrorCode::NotFound,
                "there is no kernel " + release + "; installed: " + (known.empty() ? std::string("none") : known));
  }
  if (!kernel->problems.empty()) {
    std::string text = release + " is not fit to be started:";
    for (const std::string& problem : kernel->problems) text += "\n  " + problem;
    return fail(ErrorCode::InvalidInput, text);
  }
  if (secure_boot(tree) && !kernel->image_signed)
    return fail(ErrorCode::InvalidInput,
                release + " is not signed, and secure boot is on: the firmware would refuse it");
  return {};
}

Result<void> check_place(const Tree& tree, const Inventory& inventory) {
  if (boot_is_not_mounted(tree))
    return fail(ErrorCode::Unavailable,
                "/boot has a file system of its own in /etc/fstab and is not mounted: mount /boot");
  const std::string folder =
      inventory.boot.config.substr(0, std::max<std::size_t>(inventory.boot.config.rfind('/'), 1));
  const auto fd = tree.open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  struct statvfs info{};
  if (::fstatvfs(fd->get(), &info) != 0) return fail_errno("cannot look at " + folder, errno);
  if ((info.f_flag & ST_RDONLY) != 0)
    return fail(ErrorCode::Unavailable, folder + " is mounted read-only: mount -o remount,rw first", EROFS);
  if (info.f_bavail * info.f_frsize < kRoom)
    return fail(ErrorCode::Exhausted, folder + " has less than 4 MiB left: remove a kernel that is not needed", ENOSPC);
  if (package_manager_works(tree))
    return fail(ErrorCode::Unavailable, "a package manager is at work: wait until it has ended");
  return {};
}

}  // namespace gpuhealth::grub
