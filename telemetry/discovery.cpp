// SPDX-License-Identifier: Apache-2.0
#include "telemetry/discovery.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include "telemetry/drm_nodes.hpp"
#include "telemetry/intel.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kClassDisplay = 0x03;  // PCI base classes (pci_ids.h)
constexpr std::uint32_t kClassAccelerator = 0x12;

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::optional<std::uint16_t> hex16(const std::string& path) {
  const auto value = parse_hex(read_text_or_empty(path));
  if (!value || *value > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*value);
}

std::string driver_of(const std::string& dir) {
  std::error_code error;
  const auto target = fs::read_symlink(dir + "/driver", error);
  return error ? std::string() : target.filename().string();
}

// ip_discovery/die/0/GC/0/{major,minor,revision} of newer kernels names the graphics core exactly.
std::string gfx_from_ip_discovery(const std::string& dir) {
  const std::string gc = dir + "/ip_discovery/die/0/GC/0/";
  const auto major = parse_integer(read_text_or_empty(gc + "major"));
  const auto minor = parse_integer(read_text_or_empty(gc + "minor"));
  const auto revision = parse_integer(read_text_or_empty(gc + "revision"));
  if (!major || !minor || !revision || *minor > 15 || *revision > 15) return {};
  constexpr char digits[] = "0123456789abcdef";
  return "gfx" + std::to_string(*major) + digits[*minor] + digits[*revision];
}

void read_firmware(const std::string& dir, DeviceInfo& device) {
  constexpr std::string_view suffix = "_fw_version";
  for (const auto& file : entries(dir + "/fw_version")) {
    if (!file.ends_with(suffix)) continue;
    const auto version = read_text_or_empty(dir + "/fw_version/" + file);
    const auto number = parse_hex(version);
    // A part that the ASIC does not have reads as 0.
    if (number && *number != 0) device.firmware[file.substr(0, file.size() - suffix.size())] = version;
  }
}

void read_names(const std::string& dir, const NameTable& names, DeviceInfo& device) {
  const auto product = names.find(device.device_id, device.revision);
  device.name = product.name;
  device.other_names = product.others;
  const auto board = read_text_or_empty(dir + "/product_name");  // boards with a FRU EEPROM name themselves
  if (!board.empty() && (device.name.empty() || !device.other_names.empty())) {
    device.name = board;
    device.other_names.clear();
  }
}

void read_identity(const std::string& dir, const NameTable& names, DeviceInfo& device) {
  device.subsystem_vendor = hex16(dir + "/subsystem_vendor");
  device.subsystem_device = hex16(dir + "/subsystem_device");
  if (const auto revision = parse_hex(read_text_or_empty(dir + "/revision")); revision && *revision <= 0xff)
    device.revision = static_cast<std::uint8_t>(*revision);
  device.driver = driver_of(dir);
  if (device.vendor_id != kVendorAmd) {
    device.name = intel_name(device.device_id);
    return;
  }
  const auto asic = find_asic(device.device_id);
  device.family = asic.family;
  device.gfx = std::string(asic.gfx);
  if (const auto exact = gfx_from_ip_discovery(dir); !exact.empty()) device.gfx = exact;
  device.unique_id = read_text_or_empty(dir + "/unique_id");
  if (parse_hex(device.unique_id) == 0u) device.unique_id.clear();
  device.serial = read_text_or_empty(dir + "/serial_number");
  device.vbios_version = read_text_or_empty(dir + "/vbios_version");
  device.vram_vendor = read_text_or_empty(dir + "/mem_info_vram_vendor");
  read_firmware(dir, device);
  read_names(dir, names, device);
}

// Of descriptors or memory: that says nothing of the device.
bool is_our_own_want(int sys_errno) {
  return sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == ENOMEM;
}

std::string note_on_other_vendor(unsigned vendor, unsigned id, const std::string& driver) {
  char ids[16];
  std::snprintf(ids, sizeof ids, "%04x:%04x", vendor, id);
  return ids + (driver.empty() ? std::string(", no driver") : ", driver " + driver) + ": not an AMD GPU";
}

}  // namespace

std::string device_dir(const std::string& sysroot, const PciAddress& address) {
  return sysroot + "/sys/bus/pci/devices/" + to_string(address);
}

namespace {

std::string hwmon_named(const std::string& dir, std::span<const std::string_view> drivers) {
  for (const auto& name : entries(dir + "/hwmon")) {
    const std::string path = dir + "/hwmon/" + name;
    if (std::ranges::find(drivers, read_text_or_empty(path + "/name")) != drivers.end()) return path;
  }
  return {};
}

}  // namespace

std::string hwmon_dir(const std::string& dir) {
  constexpr std::array<std::string_view, 1> drivers = {"amdgpu"};
  return hwmon_named(dir, drivers);
}

std::string any_hwmon_dir(const std::string& dir) {
  constexpr std::array<std::string_view, 3> drivers = {"amdgpu", "xe", "i915"};
  return hwmon_named(dir, drivers);
}

std::string kernel_release(const std::string& sysroot) {
  return read_text_or_empty(sysroot + "/proc/sys/kernel/osrelease");
}

Result<std::vector<PciAddress>> list_gpus(const std::string& sysroot, std::vector<std::string>& notes,
                                          const std::function<bool(const PciAddress&)>& at, std::uint16_t wanted) {
  const std::string root = sysroot + "/sys/bus/pci/devices";
  std::error_code error;
  if (!fs::is_directory(root, error))
    return fail(ErrorCode::NotFound, root + ": no such folder; expected a sysfs tree with bus/pci/devices");
  // A list that could not be read whole is none: who takes it for one takes every GPU for gone.
  std::vector<std::string> names;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) return fail_errno("cannot list " + root, error.value());
  std::ranges::sort(names);
  std::vector<PciAddress> found;
  for (const auto& name : names) {
    const auto address = parse_pci_address(name);
    if (!address || (at && !at(*address))) continue;
    const std::string dir = root + "/" + name;
    const auto class_text = read_text(dir + "/class");
    if (!class_text && is_our_own_want(class_text.error().sys_errno)) return tl::unexpected(class_text.error());
    const auto pci_class = parse_hex(class_text.value_or(""));
    if (!pci_class || ((*pci_class >> 16) != kClassDisplay && (*pci_class >> 16) != kClassAccelerator)) continue;
    const auto vendor = hex16(dir + "/vendor");
    const auto id = hex16(dir + "/device");
    if (!vendor) {
      notes.push_back(name + ": its vendor cannot be read; left out");
    } else if (*vendor == wanted && (wanted != kVendorIntel || is_discrete_intel(*address))) {
      found.push_back(*address);
    } else {
      notes.push_back(name + ": " + note_on_other_vendor(*vendor, id.value_or(0), driver_of(dir)));
    }
  }
  std::ranges::sort(found);
  return found;
}

Result<DeviceInfo> identify(const std::string& sysroot, const PciAddress& address, const NameTable& names) {
  const auto dir = device_dir(sysroot, address);
  const auto vendor = hex16(dir + "/vendor");
  const auto id = hex16(dir + "/device");
  if (!vendor) return fail(ErrorCode::NotFound, dir + ": no vendor id; the GPU is not there");
  DeviceInfo device;
  device.pci = address;
  device.vendor_id = *vendor;
  device.device_id = id.value_or(0);
  device.pci_class = parse_hex(read_text_or_empty(dir + "/class")).value_or(0);
  read_identity(dir, names, device);
  return device;
}

Result<Discovery> discover(const std::string& sysroot, const NameTable& names) {
  Discovery found;
  const auto addresses = list_gpus(sysroot, found.notes);
  if (!addresses) return tl::unexpected(addresses.error());
  for (const auto& address : *addresses) {
    if (auto device = identify(sysroot, address, names)) found.devices.push_back(std::move(*device));
  }
  attach_drm_nodes(sysroot, found.devices);
  attach_compute_nodes(sysroot, found.devices);
  return found;
}

}  // namespace gpuhealth::telemetry
