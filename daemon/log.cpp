// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace gpuhealth::daemon {
namespace {

// sd-daemon(3): info 6, warning 4, error 3.
std::string_view journal_prefix(Severity severity) {
  switch (severity) {
    case Severity::Critical:
      return "<3>";
    case Severity::Warning:
      return "<4>";
    case Severity::Info:
      break;
  }
  return "<6>";
}

}  // namespace

void log_line(Severity severity, std::string_view text) {
  static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  std::string line(journal ? journal_prefix(severity) : std::string_view("gpuhealthd: "));
  for (const char c : text) line += c == '\n' ? ' ' : c;
  line += '\n';
  // One write a line, so that lines of several processes do not mix. A log that cannot be written is nobody's fault.
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gpuhealth::daemon
