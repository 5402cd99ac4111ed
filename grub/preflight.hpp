// SPDX-License-Identifier: Apache-2.0
// What has to hold before anything is written; each error says what is missing and what to do.
#pragma once

#include <string>

#include "core/error.hpp"
#include "grub/kernels.hpp"

namespace gpuhealth::grub {

// A kernel that may be started: installed whole, with an entry, and not refused by secure boot.
Result<void> check_kernel(const Tree& tree, const Inventory& inventory, const std::string& release);

// /boot is there, writable, and has room; no package manager is at work.
Result<void> check_place(const Tree& tree, const Inventory& inventory);

}  // namespace gpuhealth::grub
