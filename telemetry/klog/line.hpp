// SPDX-License-Identifier: Apache-2.0
// One line of a log: what stands before the message (time, host, "kernel:"), in all the ways in which dmesg, journalctl
// and syslog write it, in any language. Nothing here allocates but strip_colour().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuhealth::klog {

struct Stamp {
  enum class Kind : std::uint8_t { None, Uptime, TimeOfDay };
  Kind kind = Kind::None;
  std::int64_t us = 0;
};
// Between two stamps of one kind; a time of day that goes back has passed midnight. Nothing for different kinds.
std::optional<std::int64_t> microseconds_between(const Stamp& earlier, const Stamp& later);

struct Line {
  bool kernel = true;  // false: another program's line, whatever it says
  Stamp stamp;
  std::string_view time;     // as written, without brackets
  std::string_view message;  // what the kernel printed
};
Line parse_line(std::string_view text);

// Escape sequences (colours) and carriage returns removed; /dev/kmsg's "\x1b" and the like resolved.
bool has_escapes(std::string_view text);
std::string strip_escapes(std::string_view text);

}  // namespace gpuhealth::klog
