// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"

#include <cerrno>
#include <cstring>

namespace gpuhealth {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::NotFound:
      return "not-found";
    case ErrorCode::Unreadable:
      return "unreadable";
    case ErrorCode::InvalidInput:
      return "invalid-input";
    case ErrorCode::NotPermitted:
      return "not-permitted";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Exhausted:
      return "exhausted";
    case ErrorCode::Internal:
      return "internal";
  }
  return "internal";
}

tl::unexpected<Error> fail_errno(std::string text, int sys_errno) {
  ErrorCode code = ErrorCode::Unreadable;
  if (sys_errno == ENOENT || sys_errno == ENODEV || sys_errno == ENOTDIR) code = ErrorCode::NotFound;
  if (sys_errno == EACCES || sys_errno == EPERM) code = ErrorCode::NotPermitted;
  if (sys_errno == ENOSPC || sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == ENOMEM)
    code = ErrorCode::Exhausted;
  char buffer[128];
  text += ": ";
  text += strerror_r(sys_errno, buffer, sizeof buffer);
  return fail(code, std::move(text), sys_errno);
}

}  // namespace gpuhealth
