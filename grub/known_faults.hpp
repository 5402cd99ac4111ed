// SPDX-License-Identifier: Apache-2.0
// What is to be asked of the advisories about a kernel of this machine, and where they are.
#pragma once

#include <string>
#include <vector>

#include "grub/advisories.hpp"
#include "grub/kernels.hpp"

namespace gpuhealth::grub {

AdvisoryQuestion question_about(const Inventory& inventory, const Kernel& kernel, std::vector<std::string> gfx);

// The tree's own, those installed with this program, or those of its source tree. Empty: there are none.
std::string find_advisories(const std::string& root);

// The kernel that a choice starts; empty: not known.
std::string release_of_choice(const Inventory& inventory, const Tree& tree, const Choice& choice);

}  // namespace gpuhealth::grub
