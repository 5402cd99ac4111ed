// SPDX-License-Identifier: Apache-2.0
// What a kernel image says of itself, without running it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/tree.hpp"

namespace gpuhealth::grub {

struct ImageFacts {
  std::string release;     // `uname -r`; empty when it does not say
  std::string build;       // `uname -v`: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.170-3 (2026-09-01)"
  std::string arguments;   // a UKI's own command line
  std::string title;       // a UKI's PRETTY_NAME
  bool signature = false;  // it carries one (PE certificate table); whose, and whether it is trusted, is not looked at
  bool uki = false;        // a PE file with kernel, initramfs and command line in sections
};

// x86 boot protocol header (Documentation/arch/x86/boot.rst) and PE sections. Null: not readable, or neither.
std::optional<ImageFacts> read_image(const Tree& tree, std::string_view path);

// Where a boot loader's path lies in the tree: the loader's root is the root, /boot, the ESP or a subvolume. Empty: not
// there.
std::string locate_image(const Tree& tree, std::string_view loader_path);

}  // namespace gpuhealth::grub
