// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sysfs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "telemetry/parse.hpp"

namespace gpuhealth::telemetry {

Result<Fd> open_attribute(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_errno("cannot open " + path, errno);
  return fd;
}

AttributeRead read_attribute(int fd, std::span<char> buffer) {
  ssize_t n = 0;
  do {
    n = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return {{}, errno};
  return {{buffer.data(), static_cast<std::size_t>(n)}, 0};
}

Result<std::string> read_text(const std::string& path) {
  auto fd = open_attribute(path);
  if (!fd) return tl::unexpected(fd.error());
  std::array<char, 4096> buffer;
  const auto got = read_attribute(fd->get(), buffer);
  if (got.sys_errno != 0) return fail_errno("cannot read " + path, got.sys_errno);
  return std::string(trimmed(got.text));
}

std::string read_text_or_empty(const std::string& path) {
  return read_text(path).value_or("");
}

}  // namespace gpuhealth::telemetry
