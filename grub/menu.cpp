// SPDX-License-Identifier: Apache-2.0
#include "grub/menu.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth::grub {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}
std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}
bool has_word(std::string_view arguments, std::string_view word) {
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::size_t end = std::min(arguments.find(' ', at), arguments.size());
    if (arguments.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool is_memtest(std::string_view image) {
  const std::string name = lower(base_name(image));
  return name.starts_with("memtest") || name.starts_with("mt86") || name.starts_with("mt-86");
}

// What makes a Linux entry one for repairs: its id, its image, or an argument that ends in a shell.
bool is_recovery(const MenuEntry& entry) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "single", "recovery", "rescue", "emergency", "systemd.unit=rescue.target", "systemd.unit=emergency.target",
      "S",      "1",        "s"};
  if (entry.own_id && entry.id.starts_with("gnulinux-") && entry.id.find("-recovery-") != std::string::npos)
    return true;
  const std::string_view image = entry.steps.linux_image;
  if (image.find("0-rescue") != std::string_view::npos || image.find("0_rescue") != std::string_view::npos) return true;
  if (entry.bls && (entry.id.ends_with("-0-rescue") || entry.id.ends_with("-0-rescue.conf"))) return true;
  return std::ranges::any_of(kWords, [&](std::string_view word) { return has_word(entry.steps.arguments, word); });
}

bool has_class(const MenuEntry& entry, std::string_view name) {
  return std::ranges::find(entry.classes, name) != entry.classes.end();
}

EntryKind kind_of_multiboot(const MenuEntry& entry) {
  const std::string name = lower(base_name(entry.steps.multiboot));
  if (name.starts_with("xen") || has_class(entry, "xen")) return EntryKind::Xen;
  if (name.starts_with("tboot")) return is_recovery(entry) ? EntryKind::Recovery : EntryKind::Linux;
  return is_memtest(name) ? EntryKind::Memtest : EntryKind::Unknown;
}

EntryKind kind_of_chainload(const MenuEntry& entry) {
  const std::string path = lower(entry.steps.chainloader);
  if (is_memtest(path)) return EntryKind::Memtest;
  if (path.find("/xen") != std::string::npos && path.ends_with(".efi")) return EntryKind::Xen;
  if (path.find("/microsoft/") != std::string::npos || has_class(entry, "windows") || has_class(entry, "macosx"))
    return EntryKind::OtherOs;
  return EntryKind::Chainload;
}

constexpr std::array<std::string_view, 6> kImageNames = {"vmlinuz-", "vmlinux-", "kernel-",
                                                         "bzImage-", "Image-",   "linux-"};

std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix : {".signed", ".efi", ".gz"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

std::string_view to_string(EntryKind kind) {
  static constexpr std::array<std::string_view, 8> kNames = {"linux",     "recovery", "other-os", "xen",
                                                             "chainload", "memtest",  "firmware", "unknown"};
  return kNames.at(static_cast<std::size_t>(kind));
}

const MenuEntry* entry_at(const Menu& menu, const MenuPath& path) {
  const Menu* level = &menu;
  const MenuEntry* entry = nullptr;
  for (const std::size_t index : path) {
    if (index >= level->size()) return nullptr;
    entry = &(*level)[index];
    level = &entry->children;
  }
  return entry;
}

std::string path_text(const Menu& menu, const MenuPath& path) {
  std::string out;
  for (std::size_t depth = 1; depth <= path.size(); ++depth) {
    const MenuEntry* entry = entry_at(menu, MenuPath(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth)));
    if (entry == nullptr) return {};
    if (depth > 1) out += '>';
    for (const char c : entry->id) out.append(c == '>' ? 2 : 1, c);
  }
  return out;
}

EntryKind kind_of(const MenuEntry& entry) {
  const BootSteps& steps = entry.steps;
  if (entry.submenu) return EntryKind::Unknown;
  if (entry.own_id && entry.id.starts_with("osprober-")) return EntryKind::OtherOs;
  if (!steps.multiboot.empty()) return kind_of_multiboot(entry);
  if (!steps.linux_image.empty()) {
    if (is_memtest(steps.linux_image)) return EntryKind::Memtest;
    return is_recovery(entry) ? EntryKind::Recovery : EntryKind::Linux;
  }
  if (!steps.chainloader.empty()) return kind_of_chainload(entry);
  if (!steps.other.empty()) return is_memtest(steps.other) ? EntryKind::Memtest : EntryKind::OtherOs;
  return steps.firmware ? EntryKind::Firmware : EntryKind::Unknown;
}

// Digits, a point, digits: every release that `uname -r` prints begins so.
bool looks_like_release(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t at = 0;
  while (at < text.size() && digit(text[at])) ++at;
  if (at == 0 || at + 1 >= text.size() || text[at] != '.' || !digit(text[at + 1])) return false;
  return text.find_first_of("$%*? \t") == std::string_view::npos;
}

std::string release_in_path(std::string_view image) {
  const std::string_view name = base_name(image);
  for (const std::string_view prefix : kImageNames) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = without_suffix(name.substr(prefix.size()));
    return looks_like_release(rest) ? std::string(rest) : std::string();
  }
  if (name.size() == image.size()) return {};
  const std::string_view folder = base_name(image.substr(0, image.size() - name.size() - 1));
  const bool generic = name == "linux" || name == "vmlinuz" || name == "vmlinux" || name == "linux.efi";
  return generic && looks_like_release(folder) ? std::string(folder) : std::string();
}

std::string release_of(const MenuEntry& entry) {
  if (!entry.steps.linux_image.empty()) {
    if (entry.steps.several) return {};
    std::string release = release_in_path(entry.steps.linux_image);
    if (release.empty() && entry.bls && looks_like_release(entry.version)) release = entry.version;
    if (kind_of(entry) == EntryKind::Memtest) return {};
    return release;
  }
  for (const std::string& module : entry.steps.modules) {
    std::string release = release_in_path(std::string_view(module).substr(0, module.find(' ')));
    if (!release.empty()) return release;
  }
  return {};
}

}  // namespace gpuhealth::grub
