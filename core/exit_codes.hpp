// SPDX-License-Identifier: Apache-2.0
// What our programs return to the shell.
#pragma once

#include <span>
#include <string_view>

#include "core/error.hpp"

namespace gpuhealth {

enum class ExitCode : int {
#define EXIT_CODE(id, number, text) id = number,
#include "core/exit_codes.def"
#undef EXIT_CODE
};

struct ExitCodeInfo {
  ExitCode code;
  std::string_view name;
  std::string_view text;
};
std::span<const ExitCodeInfo> all_exit_codes();
ExitCode exit_code(ErrorCode code);

}  // namespace gpuhealth
