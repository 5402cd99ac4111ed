// SPDX-License-Identifier: Apache-2.0
// GRUB's environment block: 1024 bytes that GRUB itself writes at boot, so its length and place never change
// (lib/envblk.c, util/grub-editenv.c).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::grub {

inline constexpr std::size_t kGrubEnvSize = 1024;

struct GrubEnv {
  std::map<std::string, std::string, std::less<>> values;
  bool usable = false;              // GRUB reads it: it begins with the signature
  bool external = false;            // the values are in blocks outside the file (env_block), which nobody else reads
  std::vector<std::string> damage;  // what is not as grub-editenv makes it; empty: healthy
};

GrubEnv parse_grubenv(std::string_view bytes);

// The same block with `name` set to `value`, or without it: still as long as before. Other keys keep their bytes.
// Fails on a block that is not healthy, and when there is no room.
Result<std::string> with_value(std::string_view bytes, std::string_view name, std::optional<std::string_view> value);

}  // namespace gpuhealth::grub
