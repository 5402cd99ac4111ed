// SPDX-License-Identifier: Apache-2.0
#include "core/exit_codes.hpp"

#include <array>

namespace gpuhealth {
namespace {

constexpr std::array kRows = std::to_array<ExitCodeInfo>({
#define EXIT_CODE(id, number, text) {ExitCode::id, #id, text},
#include "core/exit_codes.def"
#undef EXIT_CODE
});

}  // namespace

std::span<const ExitCodeInfo> all_exit_codes() {
  return kRows;
}

ExitCode exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::NotFound:
      return ExitCode::NotFound;
    case ErrorCode::InvalidInput:
      return ExitCode::InvalidInput;
    case ErrorCode::NotPermitted:
      return ExitCode::NotPermitted;
    case ErrorCode::Unavailable:
      return ExitCode::Unavailable;
    case ErrorCode::Unreadable:
    case ErrorCode::Exhausted:
    case ErrorCode::Internal:
      return ExitCode::Failed;
  }
  return ExitCode::Failed;
}

}  // namespace gpuhealth
