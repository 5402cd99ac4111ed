// SPDX-License-Identifier: Apache-2.0
#include "exporter/output.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include "core/fd.hpp"

namespace gpuhealth::exporter {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// In seconds since 1970; main asks for it first.
double start_time() {
  static const double started = static_cast<double>(to_microseconds(SystemClock().now().wall)) / 1e6;
  return started;
}

}  // namespace

Result<void> write_textfile(const std::string& path, const std::string& text) {
  // node_exporter reads *.prom; the file beside must not be one.
  const std::string beside = path + "." + std::to_string(getpid());
  Fd fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return fail_errno("cannot write " + beside, errno);
  const bool written = write_all(fd.get(), text) && fchmod(fd.get(), 0644) == 0;
  const int error = errno;
  fd.reset();
  if (!written) {
    unlink(beside.c_str());
    return fail_errno("cannot write " + beside, error);
  }
  if (rename(beside.c_str(), path.c_str()) != 0) {
    const int why = errno;
    unlink(beside.c_str());
    return fail_errno("cannot rename " + beside + " to " + path, why);
  }
  return {};
}

OwnCost own_cost() {
  OwnCost out;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) out.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  long long total = 0;
  long long resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  out.resident_bytes = static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
  out.start_time = start_time();
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir("/proc/self/fd"), closedir);
  while (files && readdir(files.get()) != nullptr) out.open_files += 1;
  if (files) out.open_files -= 3;  // ".", "..", and the folder itself
  return out;
}

}  // namespace gpuhealth::exporter
