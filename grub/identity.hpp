// SPDX-License-Identifier: Apache-2.0
// What a kernel is to those who write about kernels: whose it is, under which version they know it, and whether its
// base is a release of kernel.org or a frozen one with backports.
#pragma once

#include <string>
#include <string_view>

#include "grub/kernels.hpp"
#include "grub/version.hpp"

namespace gpuhealth::grub {

struct KernelIdentity {
  std::string distribution;  // "ubuntu", "fedora", "arch", …; empty: not known
  std::string version_id;    // of the distribution, "24.04"
  std::string stream;        // what shares one line of versions: "linux", "linux-hwe", "linux-oem", "linux-lts", …
  std::string version;       // in the package manager's form; empty: not known
  bool exact = false;        // the version is the package's; else it was made from the release and may lack its end
  Ordering ordering = Ordering::Upstream;
  std::string upstream;  // the release of kernel.org that it is; empty: frozen base, or not known
};
KernelIdentity identify(const Kernel& kernel, std::string_view distribution, std::string_view version_id);

}  // namespace gpuhealth::grub
