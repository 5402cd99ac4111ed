// SPDX-License-Identifier: Apache-2.0
// How a machine boots: which loader, its menu, what it starts next and from then on, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/tree.hpp"
#include "grub/grubenv.hpp"
#include "grub/interpreter.hpp"
#include "grub/menu.hpp"
#include "grub/settings.hpp"

namespace gpuhealth::grub {

enum class Loader : std::uint8_t { Unknown, Grub, GrubBls, SystemdBoot };
std::string_view to_string(Loader loader);  // "unknown", "grub", "grub-bls", "systemd-boot"

struct Boot {
  Loader loader = Loader::Unknown;
  std::string unsupported;   // "limine", "refind", …: recognised, and not one that we can steer
  std::string refusal;       // why nothing may be changed here; empty: nothing stands against it
  std::string config;        // the file that holds the menu, "/boot/grub/grub.cfg"
  std::string grubenv_path;  // where it is or would be, links followed
  std::optional<GrubEnv> grubenv;
  Settings settings;           // /etc/default/grub and drop-ins
  std::string kernel_cmdline;  // /etc/kernel/cmdline
  Menu menu;
  Choice lasting;  // without a one-shot
  Choice next;
  std::optional<Choice> afterwards;   // the boot after the next one, where it is neither unknown nor `lasting`
  std::string menu_default;           // GRUB's variable `default` as the configuration leaves it without a one-shot
  std::vector<std::string> warnings;  // what would surprise
};

// Fails only when the tree itself cannot be looked at: a strange configuration is an answer.
Result<Boot> look_at_boot(const Tree& tree);

// "ID" and the like from os-release; empty when there is none.
std::string os_release(const Tree& tree, std::string_view key);

// An entry of the menu, submenus passed through, in the order of the menu.
struct FlatEntry {
  const MenuEntry* entry = nullptr;
  MenuPath path;
  std::string path_text;
  EntryKind kind = EntryKind::Unknown;
  std::string release;  // also from the image, where the entry itself does not say
};
std::vector<FlatEntry> flatten(const Boot& boot, const Tree& tree);

}  // namespace gpuhealth::grub
