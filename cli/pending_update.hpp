// SPDX-License-Identifier: Apache-2.0
// The kernel that the package manager would install next, as it says itself.
#pragma once

#include <optional>
#include <string>

#include "grub/packages.hpp"

namespace gpuhealth::cli {

struct PendingKernel {
  std::string release;
  grub::Package package;
};

// Of what `apt-get -s dist-upgrade` prints; the newest where it names several. Pure.
std::optional<PendingKernel> kernel_in_apt_plan(const std::string& text);

// Asks apt-get on this machine, which changes nothing; nothing where there is no apt-get, or it does not answer in
// time.
std::optional<PendingKernel> pending_kernel();

}  // namespace gpuhealth::cli
