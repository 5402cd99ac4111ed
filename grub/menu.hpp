// SPDX-License-Identifier: Apache-2.0
// A boot menu as GRUB would show it, and what each entry starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::grub {

enum class EntryKind : std::uint8_t { Linux, Recovery, OtherOs, Xen, Chainload, Memtest, Firmware, Unknown };
// "linux", "recovery", "other-os", "xen", "chainload", "memtest", "firmware", "unknown".
std::string_view to_string(EntryKind kind);

// What the commands of an entry load. A text with "${name}" in it has a part that only GRUB knows.
struct BootSteps {
  std::string linux_image;  // "/boot/vmlinuz-6.1.0-50-amd64", as written: relative to GRUB's root
  std::string arguments;
  std::vector<std::string> initrds;
  std::string multiboot;             // Xen, tboot
  std::vector<std::string> modules;  // what multiboot loads behind it, arguments included
  std::string chainloader;
  std::string other;  // the command that loads something else: ntldr, kfreebsd, …
  bool firmware = false;
  bool power = false;    // halt, reboot, exit
  bool several = false;  // which of several images depends on what only GRUB knows
};

struct MenuEntry {
  std::string id;  // the title where it has no id of its own, as in GRUB
  std::string title;
  bool own_id = false;
  bool known = true;    // false: id or title has a part that only GRUB knows
  bool certain = true;  // false: whether it is in the menu depends on what only GRUB knows
  bool submenu = false;
  bool restricted = false;  // asks for a password
  bool bls = false;         // from a boot loader specification file, named by `id`
  std::vector<std::string> classes;
  std::string version;  // that a BLS file states
  std::uint32_t line = 0;
  std::size_t body = 0;  // the interpreter's number of what it does; 0: nothing
  BootSteps steps;
  std::vector<MenuEntry> children;
};
using Menu = std::vector<MenuEntry>;

// Positions from the top: {1, 2} is the third entry of the second entry's submenu.
using MenuPath = std::vector<std::size_t>;
const MenuEntry* entry_at(const Menu& menu, const MenuPath& path);
// "submenu id>entry id", a '>' within an id doubled, as saved_entry and next_entry hold it.
std::string path_text(const Menu& menu, const MenuPath& path);

EntryKind kind_of(const MenuEntry& entry);
// The kernel's release when the entry says it (file name, folder or BLS version); empty when it does not, as for
// Arch's vmlinuz-linux.
std::string release_of(const MenuEntry& entry);
// "6.1.0-50-amd64" of ".../vmlinuz-6.1.0-50-amd64", ".../6.1.0-50-amd64/linux"; empty when there is none.
std::string release_in_path(std::string_view image);
bool looks_like_release(std::string_view text);

}  // namespace gpuhealth::grub
