// SPDX-License-Identifier: Apache-2.0
// Which boot loader a tree has, those included that are recognised only to be refused.
#pragma once

#include <string>

#include "grub/boot.hpp"

namespace gpuhealth::grub {

struct LoaderFound {
  Loader loader = Loader::Unknown;  // Grub stands for both of its kinds
  std::string unsupported;          // its name, when it is one that we cannot steer
  std::string reason;               // why it is unknown, unsupported or ambiguous
  bool ambiguous = false;           // two are installed, and which one the firmware starts is not to be seen
};
LoaderFound find_loader(const Tree& tree, bool has_grub_config);

// Why nothing may be changed although the loader is known: something else owns the menu. Empty: nothing.
std::string refusal_of(const Tree& tree);

}  // namespace gpuhealth::grub
