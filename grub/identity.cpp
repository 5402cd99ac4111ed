// SPDX-License-Identifier: Apache-2.0
#include "grub/identity.hpp"

#include <algorithm>
#include <array>

#include "grub/menu.hpp"

namespace gpuhealth::grub {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// The leading "7.0.12", with "-rc3" behind it where that follows.
std::string leading_release(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (digit(text[n]) || (text[n] == '.' && n + 1 < text.size() && digit(text[n + 1])))) ++n;
  std::string out(text.substr(0, n));
  if (text.substr(n).starts_with("-rc")) {
    std::size_t end = n + 3;
    while (end < text.size() && digit(text[end])) ++end;
    out += text.substr(n, end - n);
  }
  return out;
}

// What follows the last '-' that is not a number: "generic", "oem", "cachyos-lts".
std::string_view flavour(std::string_view release) {
  std::size_t at = release.find('-');
  while (at != std::string_view::npos) {
    if (at + 1 < release.size() && !digit(release[at + 1]) && !release.substr(at).starts_with("-rc") &&
        !release.substr(at).starts_with("-arch") && !release.substr(at).starts_with("-zen1"))
      return release.substr(at + 1);
    at = release.find('-', at + 1);
  }
  return {};
}

// "#28~24.04.1-Ubuntu SMP …" behind ABI "7.0.0-28": the package is 7.0.0-28.28~24.04.1.
std::string ubuntu_version(std::string_view release, std::string_view build) {
  const auto flavour_at = release.rfind('-');
  std::string abi(release.substr(0, flavour_at));
  if (!build.starts_with('#')) return abi;
  const auto end = build.find("-Ubuntu");
  if (end == std::string_view::npos) return abi;
  return abi + "." + std::string(build.substr(1, end - 1));
}

// "… Debian 6.12.12-1~bpo12+1 (2026-01-01)"
std::string debian_version(std::string_view build) {
  const auto at = build.find(" Debian ");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = build.substr(at + 8);
  return std::string(rest.substr(0, rest.find(' ')));
}

// "6.18.14-061814-generic": the version again, as six digits.
bool is_mainline_build(std::string_view release) {
  const auto dash = release.find("-0");
  if (dash == std::string_view::npos || dash + 7 > release.size()) return false;
  return std::ranges::all_of(release.substr(dash + 1, 6), digit);
}

void identify_ubuntu(const Kernel& kernel, KernelIdentity& out) {
  out.ordering = Ordering::Dpkg;
  if (is_mainline_build(kernel.release)) {
    // A mainline build ("6.18.14-061814-generic"), not of the archive.
    out.stream = "mainline";
    out.upstream = leading_release(kernel.release);
    out.version.clear();
    return;
  }
  if (out.version.empty()) out.version = ubuntu_version(kernel.release, kernel.build);
  const std::string_view kind = flavour(kernel.release);
  const std::string source = kernel.package ? kernel.package->source : std::string();
  const bool hwe = source.find("hwe") != std::string::npos || out.version.find('~') != std::string::npos;
  if (kind == "generic" || kind == "lowlatency" || kind.starts_with("generic-")) {
    out.stream = hwe ? "linux-hwe" : "linux";
  } else {
    out.stream = "linux-" + std::string(kind.substr(0, kind.find('-')));
  }
}

void identify_debian(const Kernel& kernel, KernelIdentity& out) {
  out.ordering = Ordering::Dpkg;
  out.stream = "linux";
  if (out.version.empty()) {
    out.version = debian_version(kernel.build);
    out.exact = !out.version.empty();
  }
  // Debian takes whole stable releases, so its version tells the base; its ABI ("6.1.0-50") does not.
  std::string_view version = out.version;
  version = version.substr(0, version.rfind('-'));
  out.upstream = leading_release(version);
  if (out.upstream.empty() && kernel.release.find("+deb") != std::string::npos)
    out.upstream = leading_release(kernel.release);
}

void identify_fedora(const Kernel& kernel, KernelIdentity& out) {
  out.ordering = Ordering::Rpm;
  out.stream = kernel.release.find("-ogc") != std::string::npos ? "bazzite" : "kernel";
  if (out.version.empty()) {
    std::string_view version = kernel.release;
    version = version.substr(0, version.find("+debug"));
    for (const std::string_view arch : {".x86_64", ".aarch64"})
      if (version.ends_with(arch)) version.remove_suffix(arch.size());
    out.version = version;
    out.exact = true;
  }
  const bool candidate = out.version.find("-0.rc") != std::string::npos;
  out.upstream = leading_release(out.version);
  if (candidate) {
    const auto rc = out.version.find("rc");
    std::string_view digits = std::string_view(out.version).substr(rc + 2);
    out.upstream += "-rc" + std::string(digits.substr(0, digits.find('.')));
  }
}

void identify_arch(const Kernel& kernel, KernelIdentity& out) {
  out.ordering = Ordering::Pacman;
  const std::string& release = kernel.release;
  if (kernel.package) {
    out.stream = kernel.package->name;
  } else if (release.find("-cachyos") != std::string::npos) {
    const std::string_view kind = flavour(release);
    out.stream = "linux-" + std::string(kind);
  } else if (release.ends_with("-zen")) {
    out.stream = "linux-zen";
  } else if (release.ends_with("-lts")) {
    out.stream = "linux-lts";
  } else if (release.find("-arch") != std::string::npos) {
    out.stream = "linux";
  }
  if (out.version.empty()) {
    // "7.0.12-arch1-1" is 7.0.12.arch1-1, "7.0.12-1-cachyos" is 7.0.12-1, "7.0.12-zen1-1-zen" is 7.0.12.zen1-1.
    std::string version = release;
    for (const std::string_view mark : {"-arch", "-zen1", "-hardened1"})
      if (const auto at = version.find(mark); at != std::string::npos) version[at] = '.';
    const std::string_view kind = flavour(version);
    if (!kind.empty()) version.resize(version.size() - kind.size() - 1);
    out.version = version;
  }
  out.upstream = leading_release(release);
}

void identify_suse(const Kernel& kernel, KernelIdentity& out) {
  out.ordering = Ordering::Rpm;
  out.stream = "kernel-default";
  if (out.version.empty()) {
    const auto dash = kernel.release.rfind('-');
    out.version = kernel.release.substr(0, dash);
  }
  // Leap and SLES have a frozen base: 6.4.0-150600…
  const bool frozen = out.distribution != "opensuse-tumbleweed" && out.distribution != "opensuse-slowroll";
  if (!frozen) out.upstream = leading_release(kernel.release);
}

bool one_of(std::string_view id, std::initializer_list<std::string_view> ids) {
  return std::ranges::find(ids, id) != ids.end();
}

// A release can tell more than os-release: XanMod and CachyOS kernels run on other distributions.
std::string owner(const Kernel& kernel, std::string_view distribution) {
  const std::string& release = kernel.release;
  if (release.find("xanmod") != std::string::npos) return "xanmod";
  if (release.find("-cachyos") != std::string::npos) return "cachyos";
  if (release.ends_with("-pve")) return "proxmox";
  if (release.find("-valve") != std::string::npos) return "steamos";
  return std::string(distribution);
}

}  // namespace

KernelIdentity identify(const Kernel& kernel, std::string_view distribution, std::string_view version_id) {
  KernelIdentity out;
  out.distribution = owner(kernel, distribution);
  out.version_id = version_id;
  if (kernel.package) {
    out.version = kernel.package->version;
    out.exact = true;
  }
  const std::string& id = out.distribution;
  if (one_of(id, {"ubuntu", "linuxmint", "pop", "elementary", "neon", "zorin"})) {
    identify_ubuntu(kernel, out);
    out.distribution = "ubuntu";
  } else if (one_of(id, {"debian", "devuan", "raspbian", "kali"})) {
    identify_debian(kernel, out);
  } else if (one_of(id, {"fedora", "nobara", "bazzite", "aurora", "bluefin"})) {
    identify_fedora(kernel, out);
  } else if (one_of(id, {"arch", "cachyos", "manjaro", "endeavouros", "archarm", "garuda"})) {
    identify_arch(kernel, out);
  } else if (id.starts_with("opensuse") || one_of(id, {"sles", "sled", "suse"})) {
    identify_suse(kernel, out);
  } else if (one_of(id, {"rhel", "centos", "rocky", "almalinux", "ol", "amzn"})) {
    out.ordering = Ordering::Rpm;
    out.stream = "kernel";
    if (out.version.empty()) out.version = kernel.release.substr(0, kernel.release.rfind('.'));
  } else if (id == "proxmox") {
    out.ordering = Ordering::Dpkg;
    out.stream = "proxmox-kernel";
  } else {
    // XanMod, Void, NixOS, SteamOS, own builds: their releases begin with kernel.org's.
    out.stream = id == "void" ? "linux" : id;
    if (id == "void") out.version = kernel.release;
    out.upstream = leading_release(kernel.release);
  }
  return out;
}

}  // namespace gpuhealth::grub
