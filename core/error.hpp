// SPDX-License-Identifier: Apache-2.0
// One error type and one Result for the whole house. Expected failures are values; exceptions are for programming
// errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace gpuhealth {

enum class ErrorCode : std::uint8_t {
  NotFound,      // the thing named does not exist
  Unreadable,    // it exists and could not be read; sys_errno says why
  InvalidInput,  // it was read and is not what it must be
  NotPermitted,  // the caller may not
  Unavailable,   // a service that is needed is not there (bus, daemon, library)
  Exhausted,     // a limit was reached (disk, budget, size)
  Internal,      // a state that must not occur
};

// The stable name of a code, as printed in JSON ("not-found").
std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string text;   // what was read, what was expected, what to do
  int sys_errno = 0;  // 0 when no system call failed
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string text, int sys_errno = 0) {
  return tl::unexpected<Error>(Error{code, std::move(text), sys_errno});
}

// "TEXT: No such file or directory", with the text of `sys_errno` appended; the code follows from the errno.
tl::unexpected<Error> fail_errno(std::string text, int sys_errno);

}  // namespace gpuhealth
