// SPDX-License-Identifier: Apache-2.0
// Which version is newer, as each tool sees it. All return less than, equal to or greater than 0; no text is invalid.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuhealth::grub {

// dpkg: [epoch:]upstream[-revision] (lib/dpkg/version.c).
int compare_dpkg(std::string_view a, std::string_view b);

// rpm: [epoch:]version[-release] (rpmVersionCompare). A missing release is older than any.
int compare_rpm(std::string_view a, std::string_view b);
// One version or release (rpmio/rpmvercmp.c), with ~ before and ^ behind everything.
int compare_rpm_segment(std::string_view a, std::string_view b);

// pacman: [epoch:]version[-pkgrel] (lib/libalpm/version.c). A missing pkgrel equals any.
int compare_pacman(std::string_view a, std::string_view b);

// systemd: strverscmp_improved(), also the boot loader's.
int compare_systemd(std::string_view a, std::string_view b);

enum class Ordering : std::uint8_t { Dpkg, Rpm, Pacman, Upstream };
std::string_view to_string(Ordering ordering);  // "dpkg", "rpm", "pacman", "upstream"
std::optional<Ordering> ordering_from(std::string_view name);

// Kernel releases of kernel.org: 7.1-rc6 < 7.1 = 7.1.0 < 7.1.1. What follows the numbers and -rcN is not looked at.
int compare_upstream(std::string_view a, std::string_view b);

int compare(Ordering ordering, std::string_view a, std::string_view b);

}  // namespace gpuhealth::grub
