// SPDX-License-Identifier: Apache-2.0
// Reading sysfs: descriptors are kept and read with pread, which makes the kernel produce the value anew each time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace gpuhealth::telemetry {

// Opens for reading; the errno is in the error. Opening an attribute never touches hardware.
Result<Fd> open_attribute(const std::string& path);

struct AttributeRead {
  std::string_view text;  // views the buffer that was given
  int sys_errno = 0;      // 0 when the read succeeded, also with no bytes
};
AttributeRead read_attribute(int fd, std::span<char> buffer);

// Open, read once, close; trimmed. For identity files at discovery.
Result<std::string> read_text(const std::string& path);
// The same, empty where the file is absent or unreadable.
std::string read_text_or_empty(const std::string& path);

}  // namespace gpuhealth::telemetry
