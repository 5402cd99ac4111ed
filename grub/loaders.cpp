// SPDX-License-Identifier: Apache-2.0
#include "grub/loaders.hpp"

#include <array>
#include <string_view>

#include "grub/systemd_boot.hpp"

namespace gpuhealth::grub {
namespace {

struct Sign {
  std::string_view name;
  std::string_view path;  // "ESP/…" stands for every place where an ESP may be
  std::string_view advice;
};
constexpr std::string_view kLimine = "Limine has no one-boot choice that a running system can set";
constexpr std::string_view kRefind = "rEFInd keeps its choice in its own variables and configuration";
constexpr std::string_view kExtlinux = "its menu has no one-boot choice and no fallback";
constexpr std::string_view kLegacy = "it is too old for a safe one-boot choice";
constexpr std::array<Sign, 18> kSigns = {{
    {"limine", "/boot/limine.conf", kLimine},
    {"limine", "/boot/limine/limine.conf", kLimine},
    {"limine", "/boot/limine.cfg", kLimine},
    {"limine", "ESP/limine.conf", kLimine},
    {"limine", "ESP/limine/limine.conf", kLimine},
    {"limine", "ESP/EFI/limine/limine.conf", kLimine},
    {"limine", "ESP/EFI/BOOT/limine.conf", kLimine},
    {"refind", "ESP/EFI/refind/refind.conf", kRefind},
    {"refind", "ESP/EFI/BOOT/refind.conf", kRefind},
    {"extlinux", "/boot/extlinux/extlinux.conf", kExtlinux},
    {"extlinux", "/boot/extlinux.conf", kExtlinux},
    {"extlinux", "/extlinux/extlinux.conf", kExtlinux},
    {"syslinux", "/boot/syslinux/syslinux.cfg", kExtlinux},
    {"syslinux", "ESP/EFI/syslinux/syslinux.cfg", kExtlinux},
    {"grub-legacy", "/boot/grub/menu.lst", kLegacy},
    {"grub-legacy", "/boot/grub/grub.conf", kLegacy},
    {"lilo", "/etc/lilo.conf", kLegacy},
    {"zipl", "/etc/zipl.conf", "its menu is written to the disk by zipl"},
}};
constexpr std::array<std::string_view, 4> kEsps = {"/boot/efi", "/efi", "/boot", ""};

bool is_there(const Tree& tree, std::string_view path) {
  if (!path.starts_with("ESP/")) return tree.is_file(path);
  path.remove_prefix(3);
  for (const std::string_view esp : kEsps)
    if (tree.is_file(std::string(esp) + std::string(path))) return true;
  return false;
}

bool any_file(const Tree& tree, std::string_view folder, bool (*wanted)(std::string_view name)) {
  for (const std::string_view esp : kEsps) {
    for (const std::string& name : tree.list(std::string(esp) + std::string(folder)))
      if (wanted(name)) return true;
  }
  return false;
}

bool has_systemd_boot(const Tree& tree) {
  return any_file(tree, "/EFI/systemd", [](std::string_view n) { return n.starts_with("systemd-boot"); });
}
bool has_systemd_boot_menu(const Tree& tree) {
  return is_there(tree, "ESP/loader/loader.conf") ||
         any_file(tree, "/loader/entries", [](std::string_view n) { return n.ends_with(".conf"); });
}
bool has_ukis(const Tree& tree) {
  return any_file(tree, "/EFI/Linux", [](std::string_view n) { return n.ends_with(".efi"); });
}

// GRUB's own program: what the firmware starts.
bool has_grub_program(const Tree& tree) {
  if (tree.is_folder("/boot/grub/i386-pc") || tree.is_folder("/boot/grub2/i386-pc")) return true;
  for (const std::string_view esp : kEsps) {
    for (const std::string& vendor : tree.list(std::string(esp) + "/EFI")) {
      for (const std::string& file : tree.list(std::string(esp) + "/EFI/" + vendor))
        if (file.starts_with("grub") && file.ends_with(".efi")) return true;
    }
  }
  return false;
}

LoaderFound unsupported(std::string_view name, std::string_view advice) {
  LoaderFound out;
  out.unsupported = name;
  out.reason = "this machine boots with " + std::string(name) + ", which is not supported: " + std::string(advice);
  return out;
}

LoaderFound from_running(const Tree& tree, bool has_grub_config) {
  LoaderFound out;
  const auto info = loader_variable(tree, "LoaderInfo");
  if (!info) return out;
  if (info->starts_with("systemd-boot")) out.loader = Loader::SystemdBoot;
  if (info->starts_with("GRUB") && has_grub_config) out.loader = Loader::Grub;
  return out;
}

LoaderFound nothing_found(const Tree& tree) {
  const auto cmdline = tree.read("/proc/cmdline", std::size_t{64} << 10);
  const std::string text = cmdline ? " " + *cmdline : std::string();
  for (const std::string_view sign : {" BOOTIF=", " nfsroot=", " root=/dev/nfs", " root=nfs", " netboot", "(tftp"})
    if (text.find(sign) != std::string::npos)
      return unsupported("pxe", "the server that it boots from chooses the kernel");
  LoaderFound out;
  out.reason = tree.is_folder("/boot")
                   ? "no boot loader's configuration is in /boot; is /boot (or the EFI partition) mounted?"
                   : "there is no /boot, and no boot loader's configuration at the root";
  return out;
}

}  // namespace

LoaderFound find_loader(const Tree& tree, bool has_grub_config) {
  if (LoaderFound running = from_running(tree, has_grub_config); running.loader != Loader::Unknown) return running;
  const bool sd = has_systemd_boot(tree);
  LoaderFound out;
  if (has_grub_config) {
    out.loader = Loader::Grub;
    if (sd && has_grub_program(tree)) {
      out.ambiguous = true;
      out.reason =
          "both GRUB and systemd-boot are installed, and which of them the firmware starts is not to be seen here";
    } else if (sd) {
      out.loader = Loader::SystemdBoot;
    }
    return out;
  }
  if (sd) {
    out.loader = Loader::SystemdBoot;
    return out;
  }
  for (const Sign& sign : kSigns)
    if (is_there(tree, sign.path)) return unsupported(sign.name, sign.advice);
  if (has_systemd_boot_menu(tree)) {
    out.loader = Loader::SystemdBoot;
    return out;
  }
  if (has_ukis(tree))
    return unsupported("uki", "the firmware starts unified kernel images directly, without a boot loader");
  return nothing_found(tree);
}

std::string refusal_of(const Tree& tree) {
  if (tree.is_folder("/ostree") || tree.is_folder("/sysroot/ostree"))
    return "this system is managed by ostree, which chooses kernels by deployment: use rpm-ostree or bootc";
  if (tree.is_file("/etc/kernel/proxmox-boot-uuids"))
    return "proxmox-boot-tool copies kernels to EFI partitions of its own: use proxmox-boot-tool kernel pin";
  if (tree.is_file("/etc/NIXOS") || tree.is_folder("/nix/store"))
    return "NixOS makes its menu from its configuration: choose the kernel there";
  if (tree.is_folder("/writable/system-data")) return "Ubuntu Core chooses its kernel by snap: use snap";
  return {};
}

}  // namespace gpuhealth::grub
