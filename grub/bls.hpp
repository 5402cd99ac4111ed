// SPDX-License-Identifier: Apache-2.0
// Boot loader specification files, loader/entries/*.conf: one a kernel, read by GRUB's blscfg (Fedora, RHEL) and by
// systemd-boot (https://uapi-group.org/specifications/specs/boot_loader_specification).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grub/menu.hpp"

namespace gpuhealth::grub {

struct BlsEntry {
  std::string name;  // of the file, without .conf and without a boot counter (+3-0)
  int tries_left = -1;
  int tries_done = -1;
  std::string title;
  std::string version;
  std::string machine_id;
  std::string sort_key;
  std::string linux_image;
  std::string efi;  // efi, or uki: an image of its own
  std::vector<std::string> initrds;
  std::string options;
  std::string grub_arguments;  // grub_arg: "--unrestricted"
  std::string grub_users;
  std::vector<std::string> grub_classes;
  std::string architecture;
};

// Unknown keys are skipped, as both loaders do. `file_name` is without folders.
BlsEntry parse_bls(std::string_view file_name, std::string_view text);

// The order of the menu, best first. GRUB: by file name, as name-version-release (blscfg.c, split_cmp).
void sort_for_grub(std::vector<BlsEntry>& entries);
// systemd-boot: boot.c, boot_entry_compare.
void sort_for_systemd_boot(std::vector<BlsEntry>& entries);

// Its line in a menu, without what it starts: loaders differ in that.
MenuEntry menu_entry(const BlsEntry& bls);

}  // namespace gpuhealth::grub
