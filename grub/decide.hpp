// SPDX-License-Identifier: Apache-2.0
// What an operation means for what is wanted, and why it is refused; changes nothing.
#pragma once

#include <string>

#include "core/error.hpp"
#include "grub/operations.hpp"

namespace gpuhealth::grub {

// `plan.choices` holds what is in force; afterwards what shall be, with the wish for the boot loader.
Result<void> decide(const Tree& tree, const Inventory& inventory, const Request& request,
                    const Surroundings& surroundings, Plan& plan);

// A key of grubenv; empty where there is none.
std::string env_value(const Inventory& inventory, const std::string& key);

}  // namespace gpuhealth::grub
