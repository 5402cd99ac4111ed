// SPDX-License-Identifier: Apache-2.0
#include "daemon/only_one.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <tuple>

namespace gpuhealth::daemon {
namespace {

std::string holder_of(int fd) {
  std::array<char, 32> text{};
  const ssize_t size = pread(fd, text.data(), text.size() - 1, 0);
  std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid.empty() ? "" : " (pid " + pid + ")";
}

}  // namespace

Result<Fd> be_the_only_one(const std::string& state_dir) {
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  Fd file(open((state_dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Fd();
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Fd();  // a file system without locks
    return fail(ErrorCode::Exhausted, "another gpuhealthd" + holder_of(file.get()) + " uses " + state_dir +
                                          "; stop it, or give this one a folder of its own with --state-dir");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(file.get(), 0) == 0) std::ignore = pwrite(file.get(), pid.data(), pid.size(), 0);
  return file;
}

}  // namespace gpuhealth::daemon
