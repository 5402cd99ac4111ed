// SPDX-License-Identifier: Apache-2.0
// Which boot this is: /proc/sys/kernel/random/boot_id, 36 characters.
#pragma once

#include <string>

#include "core/error.hpp"

namespace gpuhealth {

Result<std::string> read_boot_id(const std::string& root = "");

}  // namespace gpuhealth
