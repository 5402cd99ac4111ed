// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <stdexcept>

namespace gpuhealth::grub::test {

namespace fs = std::filesystem;

DebianMachine::DebianMachine(std::vector<std::string> kernels) {
  made.file("/etc/os-release", "ID=debian\nVERSION_ID=12\n");
  made.file("/etc/default/grub", "GRUB_DEFAULT=0\n").file("/etc/default/grub.d/README", "x");
  made.file("/etc/apt/apt.conf.d/README", "x").file("/var/lib/dpkg/status", "");
  made.file("/usr/sbin/grub-mkconfig", "#!/bin/sh\n# sources /etc/default/grub and /etc/default/grub.d/*.cfg\n");
  made.file("/etc/grub.d/00_header", "").file("/etc/grub.d/10_linux", "");
  made.file("/boot/grub/grubenv", grubenv("saved_entry=users-own\n"));
  made.file("/boot/grub/i386-pc/normal.mod", "x");
  for (const std::string& kernel : kernels) install(kernel);
  if (auto done = update_grub(); !done) throw std::runtime_error(done.error().text);
}

void DebianMachine::install(const std::string& kernel) {
  made.file("/boot/vmlinuz-" + kernel, kernel_image(kernel, "#1 SMP Debian 6.1.170-3 (2026-09-01)"));
  made.file("/boot/initrd.img-" + kernel, "initramfs");
  made.file("/lib/modules/" + kernel + "/modules.dep", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko: kernel/x.ko\n");
}

// As grub-mkconfig: settings, then each script in the order of its name. 10_linux writes what Debian's would.
Result<void> DebianMachine::update_grub(const std::string& to) {
  if (tool_fails) return fail(ErrorCode::Unavailable, "grub-mkconfig failed with exit code 1: cannot find a device");
  std::vector<std::string> kernels;
  for (const auto& file : fs::directory_iterator(fs::path(made.root()) / "boot")) {
    const std::string name = file.path().filename();
    if (name.starts_with("vmlinuz-")) kernels.push_back(name.substr(8));
  }
  std::ranges::sort(kernels, std::greater<>());
  Settings settings;
  read_settings(settings, "grub", made.read("/etc/default/grub"));
  for (const auto& name : made.tree().list("/etc/default/grub.d"))
    if (name.ends_with(".cfg")) read_settings(settings, name, made.read("/etc/default/grub.d/" + name));
  DebianMenu menu;
  menu.set_default = settings.value("GRUB_DEFAULT");
  if (menu.set_default == "saved") menu.set_default = "${saved_entry}";
  menu.savedefault = settings.value("GRUB_SAVEDEFAULT") == "true";
  // 10_linux for the scripts that run it.
  const fs::path linux = fs::path(made.root()) / "etc/grub.d/10_linux";
  {
    std::ofstream script(linux);
    script << "#!/bin/sh\ncat <<'END'\n" << debian_config(kernels, menu) << "END\n";
  }
  ::chmod(linux.c_str(), 0755);
  const fs::path ours = fs::path(made.root()) / "etc/grub.d/06_gpuhealth";
  if (fs::exists(ours)) {
    const std::string key = made.read("/etc/grub.d/06_gpuhealth") + made.read("/etc/grub.d/10_linux");
    static std::map<std::string, std::string> written;  // the same script writes the same: hundreds of runs, few shells
    if (const auto known = written.find(key); known != written.end()) {
      menu.on_top = known->second;
    } else {
      // Its /boot is the tree's.
      const std::string copy = (fs::path(made.root()) / "etc/grub.d/06_run").string();
      const std::string command = "sed 's#\"/boot/#\"" + made.root() + "/boot/#' " + ours.string() + " > " + copy +
                                  " && sh " + copy + "; status=$?; rm -f " + copy + "; exit $status";
      std::FILE* pipe = ::popen(command.c_str(), "r");
      char buffer[4096];
      std::size_t n = 0;
      while ((n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) menu.on_top.append(buffer, n);
      if (::pclose(pipe) != 0) return fail(ErrorCode::Unavailable, "06_gpuhealth failed");
      written[key] = menu.on_top;
    }
  }
  made.file(to, debian_config(kernels, menu));
  made.file("/etc/grub.d/10_linux", "");
  return {};
}

Surroundings DebianMachine::surroundings() {
  Surroundings out;
  out.system = &system;
  out.run = [this](const Tree&, const std::vector<std::string>& command) { return update_grub(command.back()); };
  out.one_shot_works = [this](const Tree&, const std::string&) -> Result<void> {
    if (one_shot_works) return {};
    return fail(ErrorCode::Unavailable, "GRUB cannot write there");
  };
  out.boot_id = "boot-1";
  return out;
}

Result<Outcome> DebianMachine::perform(Operation operation, const std::string& release, const std::string& expires) {
  return grub::perform(made.tree(), {operation, release, expires}, surroundings());
}

std::map<std::string, std::string> DebianMachine::files() const {
  std::map<std::string, std::string> out;
  for (const auto& item : fs::recursive_directory_iterator(made.root())) {
    const std::string path = item.path().string().substr(made.root().size());
    if (!item.is_regular_file() || path.starts_with("/var/lib/gpuhealthd/ledger")) continue;
    struct stat info{};
    ::stat(item.path().c_str(), &info);
    out[path] = std::to_string(info.st_mode & 07777U) + ":" + made.read(path);
  }
  return out;
}

namespace {
std::string release_at(const MadeTree& made, const Boot& boot, const Choice& choice) {
  for (const FlatEntry& entry : flatten(boot, made.tree()))
    if (choice.known && entry.path == choice.path) return entry.release;
  return "unknown: " + choice.reason;
}
}  // namespace

std::string DebianMachine::boots() const {
  const Boot boot = made.boot();
  return release_at(made, boot, boot.next);
}
std::string DebianMachine::from_then_on() const {
  const Boot boot = made.boot();
  return release_at(made, boot, boot.lasting);
}

void DebianMachine::boot_once() {
  const auto changed = with_value(made.read("/boot/grub/grubenv"), "next_entry", "");
  made.file("/boot/grub/grubenv", changed.value());
}

}  // namespace gpuhealth::grub::test
