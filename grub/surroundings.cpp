// SPDX-License-Identifier: Apache-2.0
// Tools of the distribution, run inside the tree, and whether GRUB can write where its environment lies.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/boot_id.hpp"
#include "grub/operations.hpp"
#include "grub/tool.hpp"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef MSDOS_SUPER_MAGIC
#define MSDOS_SUPER_MAGIC 0x4d44
#endif

namespace gpuhealth::grub {
namespace {

Result<void> one_shot_works(const Tree& tree, const std::string& grubenv) {
  const auto fd = tree.open_file(grubenv, O_RDONLY);
  if (!fd)
    return fail(ErrorCode::NotFound, "there is no " + grubenv + "; make one with grub-editenv " + grubenv + " create");
  struct statfs kind{};
  struct stat info{};
  if (::fstatfs(fd->get(), &kind) != 0 || ::fstat(fd->get(), &info) != 0)
    return fail_errno("cannot look at " + grubenv, errno);
  const auto magic = static_cast<unsigned long>(kind.f_type) & 0xffffffffUL;
  if (magic != EXT4_SUPER_MAGIC && magic != XFS_SUPER_MAGIC && magic != MSDOS_SUPER_MAGIC)
    return fail(ErrorCode::Unavailable, "GRUB cannot write " + grubenv +
                                            " on this file system, so that a trial would be for ever; a pin works");
  const std::string device =
      "/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
  std::error_code ignored;
  for (const std::string_view layer : {"/dm", "/md"}) {
    if (std::filesystem::exists(device + std::string(layer), ignored))
      return fail(ErrorCode::Unavailable, grubenv +
                                              " is on LVM, RAID or an encrypted disk, where GRUB cannot write: a trial "
                                              "would be for ever; a pin works");
  }
  return {};
}

}  // namespace

Surroundings real_surroundings(System& system) {
  Surroundings out;
  out.system = &system;
  out.run = [](const Tree& tree, const std::vector<std::string>& command) { return run_tool(tree, command); };
  out.one_shot_works = one_shot_works;
  out.now = SystemClock().now().wall;
  out.boot_id = read_boot_id().value_or("");
  return out;
}

}  // namespace gpuhealth::grub
