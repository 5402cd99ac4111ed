// SPDX-License-Identifier: Apache-2.0
// Which kernel is known to be good on this machine: by evidence, not by age.
#pragma once

#include <span>
#include <string>

#include "grub/kernels.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::grub {

// The newest kernel that is installed whole and was blessed, those that were blessed with these GPUs first. `not_this`
// is left out. Empty: there is none.
std::string last_known_good(const Inventory& inventory, const Qualifications& all, std::span<const std::string> gpus,
                            const std::string& not_this = {});

}  // namespace gpuhealth::grub
