// SPDX-License-Identifier: Apache-2.0
#include "grub/packages.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "grub/menu.hpp"

namespace gpuhealth::grub {
namespace {

// What a kernel package's name begins with; the rest is the kernel's release.
constexpr std::array<std::string_view, 5> kDebianKernels = {"linux-image-unsigned-", "linux-image-", "proxmox-kernel-",
                                                            "pve-kernel-", "linux-modules-"};
constexpr std::array<std::string_view, 9> kOther = {
    "linux-firmware",   "firmware-amd-graphics", "amdgpu-dkms", "amdgpu-dkms-firmware",
    "amd-gpu-firmware", "linux-firmware-amdgpu", "rocm-core",   "kernel-firmware-amdgpu",
    "kernel-firmware"};

bool is_other(std::string_view name) {
  return std::ranges::find(kOther, name) != kOther.end();
}

std::string debian_release(std::string_view name) {
  for (const std::string_view prefix : kDebianKernels) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    if (prefix.starts_with("proxmox") && rest.ends_with("-signed")) rest.remove_suffix(7);
    if (rest.ends_with("-dbg") || rest.ends_with("-unsigned")) return {};
    if (prefix == "linux-modules-" || !looks_like_release(rest)) return {};
    return std::string(rest);
  }
  return {};
}

void finish(std::vector<Package>& out, Package& package, std::string_view status) {
  package.release = debian_release(package.name);
  const bool there = status.ends_with(" installed") || status.ends_with(" unpacked") ||
                     status.ends_with(" half-configured") || status.ends_with(" triggers-pending") ||
                     status.ends_with(" triggers-awaited");
  package.configured = !status.ends_with(" unpacked") && !status.ends_with(" half-configured");
  if (there && (!package.release.empty() || is_other(package.name))) out.push_back(package);
  package = {};
}

std::uint32_t big(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  if (at + 4 > bytes.size()) return 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

// A string of an rpm header (rpm's docs/manual/hregions.md): index of 16 bytes a tag, then the data.
std::string header_text(std::string_view blob, std::uint32_t tag) {
  const std::size_t count = std::min<std::size_t>(big(blob, 0), 65536);
  const std::size_t data = 8 + count * 16;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = 8 + i * 16;
    if (at + 16 > blob.size() || big(blob, at) != tag) continue;
    const std::uint32_t type = big(blob, at + 4);
    const std::size_t offset = data + big(blob, at + 8);
    if (offset >= blob.size()) return {};
    if (type == 4) return std::to_string(big(blob, offset));
    if (type != 6) return {};
    const std::string_view text = blob.substr(offset, 1024);
    return std::string(text.substr(0, text.find('\0')));
  }
  return {};
}

Package rpm_package(std::string_view blob) {
  constexpr std::uint32_t kName = 1000, kVersion = 1001, kRelease = 1002, kEpoch = 1003, kArch = 1022;
  Package out;
  out.name = header_text(blob, kName);
  const std::string version = header_text(blob, kVersion);
  const std::string release = header_text(blob, kRelease);
  const std::string epoch = header_text(blob, kEpoch);
  out.version = (epoch.empty() ? "" : epoch + ":") + version + "-" + release;
  if (!out.name.starts_with("kernel") || is_other(out.name)) return out;
  if (out.name == "kernel-default" || out.name == "kernel-longterm" || out.name == "kernel-rt") {
    // openSUSE: the last part of the release counts rebuilds and is not in `uname -r`.
    out.release = version + "-" + release.substr(0, release.rfind('.')) + "-" + out.name.substr(7);
  } else {
    out.release = version + "-" + release + "." + header_text(blob, kArch);
  }
  return out;
}

void read_rpm(const Tree& tree, const std::string& path, Packages& out) {
  out.manager = Ordering::Rpm;
  sqlite3* raw = nullptr;
  const std::string file = (tree.running() ? "" : tree.root()) + path;
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(raw, &sqlite3_close);
  const char* question =
      "SELECT p.blob FROM Name n JOIN Packages p ON p.hnum = n.hnum WHERE n.key IN ('kernel', 'kernel-core', "
      "'kernel-default', 'kernel-longterm', 'kernel-rt', 'kernel-uek-core', 'kernel-uek', 'linux-firmware', "
      "'amd-gpu-firmware', 'kernel-firmware-amdgpu', 'amdgpu-dkms', 'amdgpu-dkms-firmware', 'rocm-core')";
  sqlite3_stmt* raw_statement = nullptr;
  if (opened != SQLITE_OK || sqlite3_prepare_v2(raw, question, -1, &raw_statement, nullptr) != SQLITE_OK) {
    out.notes.push_back(path + ": the rpm database cannot be read" +
                        (raw != nullptr ? std::string(": ") + sqlite3_errmsg(raw) : std::string()));
    return;
  }
  const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(raw_statement, &sqlite3_finalize);
  while (sqlite3_step(raw_statement) == SQLITE_ROW) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(raw_statement, 0));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(raw_statement, 0));
    if (bytes != nullptr) out.all.push_back(rpm_package({bytes, size}));
  }
}

// NAME-VERSION-PKGREL, a folder each; the kernel's release is found through its pkgbase file.
void read_pacman(const Tree& tree, Packages& out) {
  out.manager = Ordering::Pacman;
  std::vector<std::pair<std::string, std::string>> bases;  // package, release
  for (const std::string& release : tree.list("/usr/lib/modules")) {
    const auto base = tree.read("/usr/lib/modules/" + release + "/pkgbase", 4096);
    if (base) bases.emplace_back(base->substr(0, base->find('\n')), release);
  }
  for (const std::string& folder : tree.list("/var/lib/pacman/local")) {
    const auto last = folder.rfind('-');
    const auto middle = last == std::string::npos || last == 0 ? std::string::npos : folder.rfind('-', last - 1);
    if (middle == std::string::npos) continue;
    Package package;
    package.name = folder.substr(0, middle);
    package.version = folder.substr(middle + 1);
    for (const auto& [name, release] : bases)
      if (name == package.name) package.release = release;
    if (!package.release.empty() || is_other(package.name)) out.all.push_back(std::move(package));
  }
}

}  // namespace

std::vector<Package> parse_dpkg_status(std::string_view text) {
  std::vector<Package> out;
  Package package;
  std::string status;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      finish(out, package, status);
      status.clear();
    } else if (line.starts_with("Package: ")) {
      package.name = line.substr(9);
    } else if (line.starts_with("Version: ")) {
      package.version = line.substr(9);
    } else if (line.starts_with("Source: ")) {
      package.source = line.substr(8, line.find(" (") == std::string_view::npos ? line.size() : line.find(" (") - 8);
    } else if (line.starts_with("Status: ")) {
      status = line.substr(8);
    }
  }
  finish(out, package, status);
  return out;
}

Packages read_packages(const Tree& tree) {
  Packages out;
  if (const auto status = tree.read("/var/lib/dpkg/status", std::size_t{256} << 20)) {
    out.manager = Ordering::Dpkg;
    out.all = parse_dpkg_status(*status);
    return out;
  }
  for (const std::string_view path : {"/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite"}) {
    const auto there = tree.resolve(path);
    if (!there) continue;
    read_rpm(tree, *there, out);
    return out;
  }
  if (tree.is_folder("/var/lib/pacman/local")) {
    read_pacman(tree, out);
  } else if (tree.is_folder("/usr/lib/sysimage/rpm") || tree.is_folder("/var/lib/rpm")) {
    out.manager = Ordering::Rpm;
    out.notes.emplace_back("the rpm database is in a form that is not read here (not sqlite)");
  }
  return out;
}

}  // namespace gpuhealth::grub
