// SPDX-License-Identifier: Apache-2.0
// Tools of the distribution, run inside the tree, and whether GRUB can write where its environment lies.
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/boot_id.hpp"
#include "grub/operations.hpp"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef MSDOS_SUPER_MAGIC
#define MSDOS_SUPER_MAGIC 0x4d44
#endif

namespace gpuhealth::grub {
namespace {

constexpr int kToolSeconds = 300;

// Titles are written in the language of whoever makes the menu: that of the system, not of this process.
std::string system_language(const Tree& tree) {
  for (const std::string_view path : {"/etc/default/locale", "/etc/locale.conf"}) {
    const auto text = tree.read(path, std::size_t{64} << 10);
    if (!text) continue;
    Settings values;
    read_settings(values, path, *text);
    if (!values.value("LANG").empty()) return values.value("LANG");
  }
  return "C";
}

[[noreturn]] void become(const Tree& tree, const std::vector<std::string>& command, const std::string& language,
                         int out) {
  if (::setpgid(0, 0) != 0) ::_exit(126);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) (void)::dup2(null, STDIN_FILENO);
  (void)::dup2(out, STDOUT_FILENO);
  (void)::dup2(out, STDERR_FILENO);
  if (!tree.running() && (::chroot(tree.root().c_str()) != 0 || ::chdir("/") != 0)) ::_exit(125);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::string lang = "LANG=" + language;
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string home = "HOME=/root";
  char* environment[] = {lang.data(), path.data(), home.data(), nullptr};
  ::execvpe(command.front().c_str(), arguments.data(), environment);
  ::_exit(127);
}

std::string read_end(int fd, pid_t child, bool& late) {
  std::string said;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kToolSeconds);
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      late = true;
      (void)::kill(-child, SIGKILL);
      return said;
    }
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return said;
    said.append(buffer, static_cast<std::size_t>(n));
    if (said.size() > 16384) said.erase(0, said.size() - 8192);
  }
}

std::string last_lines(const std::string& said) {
  std::string text = said.size() > 600 ? said.substr(said.size() - 600) : said;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<void> run_tool(const Tree& tree, const std::vector<std::string>& command) {
  if (!tree.running() && ::geteuid() != 0)
    return fail(ErrorCode::NotPermitted, "running " + command.front() + " inside " + tree.root() + " needs root");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot start " + command.front(), errno);
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const std::string language = system_language(tree);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("cannot start " + command.front(), errno);
  if (child == 0) become(tree, command, language, out.get());
  out.reset();
  bool late = false;
  const std::string said = read_end(in.get(), child, late);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late)
    return fail(ErrorCode::Unavailable, command.front() + " did not end within " + std::to_string(kToolSeconds) + " s");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127)
    return fail(ErrorCode::Unavailable, command.front() + " cannot be run inside " + tree.root() +
                                            ": it, its shell or its libraries are missing");
  return fail(ErrorCode::Unavailable,
              command.front() + " failed with exit code " + std::to_string(code) + ": " + last_lines(said));
}

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
  out.run = run_tool;
  out.one_shot_works = one_shot_works;
  out.now = SystemClock().now().wall;
  out.boot_id = read_boot_id().value_or("");
  return out;
}

}  // namespace gpuhealth::grub
