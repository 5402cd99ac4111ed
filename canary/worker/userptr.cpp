// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/userptr.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "canary/worker/environment.hpp"

namespace gpuhealth::canary {
namespace fs = std::filesystem;
namespace {

// The stable part of drm.h and amdgpu_drm.h; the numbers are those of libdrm's headers.
struct DrmVersion {
  int major, minor, patch;
  std::size_t name_size;
  char* name;
  std::size_t date_size;
  char* date;
  std::size_t text_size;
  char* text;
};
struct GemUserptr {
  std::uint64_t address, size;
  std::uint32_t flags, handle;
};
struct GemClose {
  std::uint32_t handle, pad;
};
constexpr unsigned long kDrmVersion = _IOWR('d', 0x00, DrmVersion);
constexpr unsigned long kGemClose = _IOW('d', 0x09, GemClose);
constexpr unsigned long kUserptr = _IOWR('d', 0x51, GemUserptr);
static_assert(kDrmVersion == 0xc0406400 && kGemClose == 0x40086409 && kUserptr == 0xc0186451);
constexpr std::uint32_t kValidate = 1U << 2U;
constexpr std::uint32_t kRegister = 1U << 3U;

std::string driver_of(int fd) {
  std::array<char, 64> name{};
  DrmVersion version{};
  version.name = name.data();
  version.name_size = name.size() - 1;
  if (ioctl(fd, kDrmVersion, &version) != 0) return {};
  return name.data();
}

// From the node's own number: /sys/dev/char/226:128/device -> ../../../0000:03:00.0.
std::string pci_of(const std::string& node) {
  struct stat info{};
  if (stat(node.c_str(), &info) != 0) return {};
  const auto link =
      "/sys/dev/char/" + std::to_string(major(info.st_rdev)) + ":" + std::to_string(minor(info.st_rdev)) + "/device";
  std::error_code error;
  const auto name = fs::canonical(link, error).filename().string();
  return parse_pci_address(name) ? name : std::string();
}

std::vector<std::string> render_nodes() {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/dev/dri"), closedir);
  if (!folder) return out;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with("renderD")) out.push_back("/dev/dri/" + name);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

Result<std::vector<RenderNode>> open_amdgpu_nodes(const std::optional<PciAddress>& device) {
  std::vector<RenderNode> out;
  std::string seen;
  const auto nodes = render_nodes();
  for (const auto& path : nodes) {
    RenderNode node;
    node.path = path;
    node.pci = pci_of(path);
    if (device && node.pci != to_string(*device)) continue;
    if (!node.pci.empty() && asleep("", node.pci)) {
      seen += "; " + path + " sleeps, and is left asleep";
      continue;
    }
    node.fd.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!node.fd) {
      seen += "; " + path + ": " + std::strerror(errno);
      continue;
    }
    const auto driver = driver_of(node.fd.get());
    if (driver == "amdgpu")
      out.push_back(std::move(node));
    else
      seen += "; " + path + " is " + (driver.empty() ? "no DRM device" : driver + "'s");
  }
  if (!out.empty()) return out;
  return fail(ErrorCode::NotFound, "no device: " +
                                       (device ? "no amdgpu render node at " + to_string(*device)
                                               : std::string("no amdgpu render node in /dev/dri")) +
                                       seen);
}

Pin userptr_pin(int render_node) {
  return [render_node](void* data, std::size_t bytes) {
    // Write intent (no READONLY) on memory that need not be anonymous: what a runtime asks for a copy.
    GemUserptr request{reinterpret_cast<std::uint64_t>(data), bytes, kRegister | kValidate, 0};
    if (ioctl(render_node, kUserptr, &request) != 0) return errno;
    GemClose close{request.handle, 0};
    ioctl(render_node, kGemClose, &close);
    return 0;
  };
}

}  // namespace gpuhealth::canary
