// SPDX-License-Identifier: Apache-2.0
// Installed packages that hold kernels, firmware or drivers, as dpkg, rpm and pacman record them on disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tree.hpp"
#include "grub/version.hpp"

namespace gpuhealth::grub {

struct Package {
  std::string name;
  std::string version;     // with epoch and release
  std::string source;      // dpkg: the source package, "linux-signed-hwe-7.0"; else empty
  std::string release;     // of the kernel that it holds; empty: none
  bool configured = true;  // dpkg: fully installed
};

struct Packages {
  Ordering manager = Ordering::Upstream;  // whose database was read; Upstream: none
  std::vector<Package> all;               // kernel, firmware and driver packages only
  std::vector<std::string> notes;
};

Packages read_packages(const Tree& tree);

// One stanza file (dpkg/status); pure, for tests and fuzzing.
std::vector<Package> parse_dpkg_status(std::string_view text);

}  // namespace gpuhealth::grub
