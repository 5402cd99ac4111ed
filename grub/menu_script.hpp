// SPDX-License-Identifier: Apache-2.0
// The script that grub-mkconfig runs ahead of the distribution's own, so that our entries come first.
#pragma once

#include <string>

namespace gpuhealth::grub {

struct MenuScriptEntry {
  std::string release;  // empty: no such entry
  std::string body;     // what it did when it was chosen: used where the distribution's script does not write it
};
std::string menu_script(const MenuScriptEntry& pinned, const MenuScriptEntry& trial);

// Releases go into scripts and patterns: letters, digits and . + ~ _ - only.
bool is_plain_release(const std::string& release);

}  // namespace gpuhealth::grub
