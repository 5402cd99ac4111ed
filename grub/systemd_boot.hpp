// SPDX-License-Identifier: Apache-2.0
// systemd-boot: loader.conf, entries on the ESP or the extended boot partition, and what EFI variables choose
// (src/boot/boot.c, https://systemd.io/BOOT_LOADER_INTERFACE).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tree.hpp"
#include "grub/bls.hpp"
#include "grub/interpreter.hpp"
#include "grub/menu.hpp"

namespace gpuhealth::grub {

struct LoaderConf {
  std::string default_pattern;  // empty: none
  std::string timeout;
};
LoaderConf parse_loader_conf(std::string_view text);

// Shell patterns as systemd-boot matches them, case ignored.
bool matches_pattern(std::string_view pattern, std::string_view text);

// A variable of the boot loader interface, decoded from UTF-16; null: absent, or no EFI variables in the tree.
std::optional<std::string> loader_variable(const Tree& tree, std::string_view name);
bool has_efi_variables(const Tree& tree);

// The menu in its order; ids are file names with .conf or .efi, as bootctl prints them.
Menu systemd_boot_menu(const std::vector<BlsEntry>& entries, const Tree& tree, const std::vector<std::string>& places);

struct SystemdBootChoice {
  Choice next;
  Choice lasting;
};
SystemdBootChoice choose_systemd_boot(const Menu& menu, const LoaderConf& conf, const Tree& tree);

}  // namespace gpuhealth::grub
