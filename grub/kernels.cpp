// SPDX-License-Identifier: Apache-2.0
#include "grub/kernels.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/sorted.hpp"
#include "grub/image.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::array<std::string_view, 2> kModuleFolders = {"/lib/modules", "/usr/lib/modules"};

std::string running_release(const Tree& tree) {
  if (tree.running()) {
    utsname name{};
    return uname(&name) == 0 ? name.release : "";
  }
  auto text = tree.read("/proc/sys/kernel/osrelease", 4096);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::set<std::string> find_releases(const Tree& tree, const std::vector<FlatEntry>& entries) {
  std::set<std::string> out;
  for (const std::string_view folder : kModuleFolders) {
    for (const std::string& name : tree.list(folder)) {
      const std::string path = std::string(folder) + "/" + name;
      // What a removed kernel leaves behind (DKMS, caches) is no kernel.
      if (looks_like_release(name) &&
          (tree.is_file(path + "/modules.dep") || tree.is_folder(path + "/kernel") || tree.is_file(path + "/vmlinuz")))
        out.insert(name);
    }
  }
  for (const std::string& name : tree.list("/boot")) {
    const std::string release = release_in_path("/boot/" + name);
    const bool kernel = name.starts_with("vmlinuz-") || name.starts_with("vmlinux-") || name.starts_with("kernel-");
    if (kernel && !release.empty()) out.insert(release);
  }
  for (const FlatEntry& entry : entries)
    if (!entry.release.empty() && (entry.kind == EntryKind::Linux || entry.kind == EntryKind::Recovery))
      out.insert(entry.release);
  return out;
}

std::string modules_folder(const Tree& tree, const std::string& release) {
  for (const std::string_view folder : kModuleFolders) {
    std::string path = std::string(folder) + "/" + release;
    if (tree.is_folder(path)) return path;
  }
  return {};
}

// Which amdgpu this kernel would load: depmod gives updates/ and extra/ precedence.
void find_amdgpu(const Tree& tree, const std::string& folder, Kernel& kernel) {
  const auto dep = tree.read(folder + "/modules.dep");
  if (!dep) return;
  bool in_tree = false;
  bool added = false;
  std::string_view rest = *dep;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view path = rest.substr(0, std::min(rest.find(':'), end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto slash = path.rfind('/');
    if (!path.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("amdgpu.ko")) continue;
    (path.starts_with("kernel/") ? in_tree : added) = true;
  }
  const auto builtin = tree.read(folder + "/modules.builtin");
  const bool built_in = builtin && builtin->find("/amdgpu.ko") != std::string::npos;
  kernel.amdgpu = added      ? AmdgpuModule::Dkms
                  : in_tree  ? AmdgpuModule::InTree
                  : built_in ? AmdgpuModule::BuiltIn
                             : AmdgpuModule::Missing;
}

// dkms/amdgpu/VERSION/RELEASE/ARCH/module; "kernel-RELEASE-ARCH" beside them is a link to it.
void find_dkms(const Tree& tree, Kernel& kernel) {
  bool any = false;
  for (const std::string& version : tree.list("/var/lib/dkms/amdgpu")) {
    if (!looks_like_release(version)) continue;
    any = true;
    if (tree.is_folder("/var/lib/dkms/amdgpu/" + version + "/" + kernel.release)) kernel.dkms_version = version;
  }
  kernel.dkms_lacking = any && kernel.amdgpu != AmdgpuModule::Dkms;
}

void find_files(const Tree& tree, const std::vector<FlatEntry>& entries, Kernel& kernel) {
  for (const std::string_view prefix : {"/boot/vmlinuz-", "/boot/vmlinux-", "/boot/kernel-"}) {
    const std::string path = std::string(prefix) + kernel.release;
    if (kernel.image.empty() && tree.is_file(path)) kernel.image = path;
  }
  for (const std::string_view pattern : {"/boot/initrd.img-%", "/boot/initramfs-%.img", "/boot/initrd-%"}) {
    std::string path(pattern);
    path.replace(path.find('%'), 1, kernel.release);
    if (kernel.initramfs.empty() && tree.is_file(path)) kernel.initramfs = path;
  }
  for (const FlatEntry& entry : entries) {
    if (entry.release != kernel.release || entry.kind != EntryKind::Linux) continue;
    if (kernel.image.empty()) kernel.image = locate_image(tree, entry.entry->steps.linux_image);
    if (kernel.initramfs.empty() && !entry.entry->steps.initrds.empty())
      kernel.initramfs = locate_image(tree, entry.entry->steps.initrds.back());
  }
  const std::string folder = modules_folder(tree, kernel.release);
  if (kernel.image.empty() && !folder.empty() && tree.is_file(folder + "/vmlinuz")) kernel.image = folder + "/vmlinuz";
  if (!kernel.initramfs.empty()) {
    const auto info = tree.stat(kernel.initramfs);
    kernel.initramfs_whole = info && info->st_size > 0;
  }
  if (!kernel.image.empty()) {
    const auto info = tree.stat(kernel.image);
    kernel.installed = info ? info->st_mtime : 0;
    if (const auto facts = read_image(tree, kernel.image)) {
      kernel.build = facts->build;
      kernel.image_signed = facts->signature;
      // A UKI carries its initramfs.
      if (facts->uki) kernel.initramfs = kernel.image, kernel.initramfs_whole = true;
    }
  }
  if (folder.empty()) return;
  const auto dep = tree.stat(folder + "/modules.dep");
  kernel.modules = dep && dep->st_size > 0;
  find_amdgpu(tree, folder, kernel);
}

void find_problems(const std::vector<FlatEntry>& entries, Kernel& kernel) {
  const auto add = [&](std::string text) { kernel.problems.push_back(std::move(text)); };
  if (kernel.image.empty()) add("its image is not in /boot");
  if (kernel.initramfs.empty()) {
    add("it has no initramfs");
  } else if (!kernel.initramfs_whole) {
    add("its initramfs " + kernel.initramfs + " is empty");
  }
  if (!kernel.modules) add("its modules are missing: there is no modules.dep in /lib/modules/" + kernel.release);
  if (kernel.package && !kernel.package->configured)
    add("its package " + kernel.package->name + " is only half installed: run dpkg --configure -a");
  if (kernel.dkms_lacking && kernel.modules)
    add("amdgpu comes from DKMS on this machine and is not built for this kernel");
  if (kernel.entries.empty()) add("the boot menu has no entry for it");
  for (const FlatEntry& entry : entries) {
    if (entry.kind != EntryKind::Linux || kernel.entries.empty() || entry.path_text != kernel.entries.front()) continue;
    const std::string arguments = " " + entry.entry->steps.arguments;
    if (entry.entry->steps.chainloader.empty() && arguments.find(" root=") == std::string::npos &&
        arguments.find(" $") == std::string::npos && arguments.find(" ostree=") == std::string::npos)
      add("its entry has no root= argument");
  }
}

// Plain entries in front: Debian's in the submenu name the release, gnulinux-simple does too as long as it is the
// newest.
int rank(const FlatEntry& entry) {
  const std::string& id = entry.entry->id;
  if (id.find("-advanced-") != std::string::npos || entry.entry->bls) return 0;
  if (id.starts_with("gpuhealth-")) return 3;
  if (id.starts_with("gnulinux-simple-")) return 1;
  return 2;
}

void find_entries(const std::vector<FlatEntry>& entries, Kernel& kernel) {
  std::vector<const FlatEntry*> mine;
  for (const FlatEntry& entry : entries)
    if (entry.kind == EntryKind::Linux && entry.release == kernel.release && entry.entry->certain)
      mine.push_back(&entry);
  sort_stable(mine, [](const FlatEntry* a, const FlatEntry* b) { return rank(*a) < rank(*b); });
  for (const FlatEntry* entry : mine) kernel.entries.push_back(entry->path_text);
}

std::string chosen_release(const std::vector<FlatEntry>& entries, const Choice& choice) {
  if (!choice.known) return {};
  for (const FlatEntry& entry : entries)
    if (entry.path == choice.path) return entry.release;
  return {};
}

}  // namespace

std::string_view to_string(AmdgpuModule module) {
  static constexpr std::array<std::string_view, 5> kNames = {"unknown", "in-tree", "dkms", "built-in", "missing"};
  return kNames.at(static_cast<std::size_t>(module));
}

Result<Inventory> take_inventory(const Tree& tree) {
  auto boot = look_at_boot(tree);
  if (!boot) return tl::unexpected<Error>(boot.error());
  Inventory out;
  out.boot = std::move(*boot);
  out.packages = read_packages(tree);
  out.distribution = os_release(tree, "ID");
  out.version_id = os_release(tree, "VERSION_ID");
  out.running = running_release(tree);
  const auto entries = flatten(out.boot, tree);
  const std::string next = chosen_release(entries, out.boot.next);
  const std::string lasting = chosen_release(entries, out.boot.lasting);
  for (const std::string& release : find_releases(tree, entries)) {
    Kernel kernel;
    kernel.release = release;
    for (const Package& package : out.packages.all) {
      const bool better =
          !kernel.package || package.name.ends_with("-core") || package.name.starts_with("linux-image-");
      if (package.release == release && better) kernel.package = package;
    }
    find_files(tree, entries, kernel);
    find_dkms(tree, kernel);
    find_entries(entries, kernel);
    find_problems(entries, kernel);
    kernel.running = release == out.running;
    kernel.next = release == next;
    kernel.lasting = release == lasting;
    out.kernels.push_back(std::move(kernel));
  }
  sort_stable(out.kernels, [](const Kernel& a, const Kernel& b) {
    return compare_dpkg(a.release, b.release) > 0;  // digits as numbers, which is all that is needed here
  });
  return out;
}

const Kernel* find_kernel(const Inventory& inventory, std::string_view release) {
  for (const Kernel& kernel : inventory.kernels)
    if (kernel.release == release) return &kernel;
  return nullptr;
}

std::optional<FlatEntry> entry_for(const Inventory& inventory, const Tree& tree, std::string_view release) {
  const Kernel* kernel = find_kernel(inventory, release);
  if (kernel == nullptr || kernel->entries.empty()) return std::nullopt;
  for (FlatEntry& entry : flatten(inventory.boot, tree))
    if (entry.path_text == kernel->entries.front()) return std::move(entry);
  return std::nullopt;
}

}  // namespace gpuhealth::grub
