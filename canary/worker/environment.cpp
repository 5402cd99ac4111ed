// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "canary/measurement.hpp"
#include "core/version.hpp"

namespace gpuhealth::canary {
namespace fs = std::filesystem;
namespace {

// Set by people to get around the host-copy stall and its relatives (ROCm issues 6358, 6523, 6606), or to hide a GPU.
constexpr std::array<std::string_view, 22> kWorkarounds = {
    "GPU_PINNED_MIN_XFER_SIZE", "GPU_PINNED_XFER_SIZE",       "GPU_FORCE_BLIT_COPY_SIZE", "HSA_USERPTR_FOR_PAGED_MEM",
    "ROC_FORCE_STAGED_D2H",     "ROC_USE_PINNED_HOST_MEMORY", "HSA_ENABLE_SDMA",          "HSA_XNACK",
    "HSA_OVERRIDE_GFX_VERSION", "HSA_DISABLE_CACHE",          "GPU_MAX_HW_QUEUES",        "GPU_MAX_HEAP_SIZE",
    "GPU_ENABLE_PAL",           "AMD_SERIALIZE_KERNEL",       "AMD_SERIALIZE_COPY",       "HIP_LAUNCH_BLOCKING",
    "HIP_VISIBLE_DEVICES",      "ROCR_VISIBLE_DEVICES",       "CUDA_VISIBLE_DEVICES",     "CUDA_LAUNCH_BLOCKING",
    "CUDA_DISABLE_PTX_JIT",     "SAFETENSORS_FAST_GPU"};

// How a runtime is found and where it may write; sanitizers, for our own tests.
constexpr std::array<std::string_view, 21> kKept = {"PATH",
                                                    "HOME",
                                                    "LANG",
                                                    "LC_ALL",
                                                    "TMPDIR",
                                                    "XDG_CACHE_HOME",
                                                    "XDG_RUNTIME_DIR",
                                                    "CACHE_DIRECTORY",
                                                    "LD_LIBRARY_PATH",
                                                    "LD_PRELOAD",
                                                    "OCL_ICD_VENDORS",
                                                    "OCL_ICD_FILENAMES",
                                                    "OPENCL_VENDOR_PATH",
                                                    "POCL_CACHE_DIR",
                                                    "RUSTICL_ENABLE",
                                                    "CUDA_CACHE_PATH",
                                                    "CUDA_CACHE_DISABLE",
                                                    "ASAN_OPTIONS",
                                                    "UBSAN_OPTIONS",
                                                    "TSAN_OPTIONS",
                                                    "LSAN_OPTIONS"};

bool is_kept(std::string_view name) {
  return std::ranges::find(kKept, name) != kKept.end();
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ' || line.back() == '\0')) line.pop_back();
  return line;
}

// "export NAME=value", "NAME=value" in the files that set variables for everybody.
void read_assignments(const std::string& path, std::map<std::string, std::string>& out) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::string_view text = line;
    while (text.starts_with(" ") || text.starts_with("\t")) text.remove_prefix(1);
    if (text.starts_with("export ")) text.remove_prefix(7);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = text.substr(0, equals);
    if (std::ranges::find(kWorkarounds, name) == kWorkarounds.end()) continue;
    out[std::string(name)] = std::string(text.substr(equals + 1, 200)) + " (" + path + ")";
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    out.push_back(it->path().string());
  std::ranges::sort(out);
  return out;
}

std::string device_dir(const std::string& root, const std::string& pci) {
  return root + "/sys/bus/pci/devices/" + pci;
}

std::string driver_of(const std::string& device) {
  std::error_code error;
  return fs::read_symlink(device + "/driver", error).filename().string();
}

// A hash over every file of a folder, names and contents.
std::string folder_hash(const std::string& folder) {
  std::map<std::string, std::string> content;
  for (const auto& file : files_in(folder)) content[fs::path(file).filename().string()] = first_line(file);
  return content.empty() ? std::string() : epoch_of(content);
}

std::string amdgpu_command_line(const std::string& root) {
  std::istringstream words(first_line(root + "/proc/cmdline"));
  std::string out;
  for (std::string word; words >> word;) {
    if (word.starts_with("amdgpu.") || word.starts_with("iommu") || word.starts_with("amd_iommu") ||
        word.starts_with("pcie_aspm"))
      out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

double link_of(const std::string& dir) {
  const double gt_s = std::strtod(first_line(dir + "/current_link_speed").c_str(), nullptr);
  const double lanes = std::strtod(first_line(dir + "/current_link_width").c_str(), nullptr);
  if (gt_s <= 0 || lanes <= 0) return 0;
  const double coding = gt_s < 8 ? 0.8 : 128.0 / 130.0;
  return gt_s * lanes * coding / 8;
}

void put_scaled(std::map<std::string, std::string>& out, const std::string& name, const std::string& path,
                double scale) {
  const auto text = first_line(path);
  if (text.empty()) return;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return;
  std::ostringstream number;
  number << value / scale;
  out[name] = number.str();
}

}  // namespace

std::map<std::string, std::string> workarounds(const std::string& root) {
  std::map<std::string, std::string> out;
  read_assignments(root + "/etc/environment", out);
  for (const char* folder : {"/etc/environment.d", "/etc/profile.d", "/usr/lib/environment.d"}) {
    for (const auto& file : files_in(root + folder)) read_assignments(file, out);
  }
  if (!root.empty()) return out;
  for (const auto name : kWorkarounds) {
    if (const char* value = std::getenv(std::string(name).c_str())) out[std::string(name)] = value;
  }
  return out;
}

void clean_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const auto& name : names) {
    if (!is_kept(name)) unsetenv(name.c_str());
  }
  // A runtime's compiler looks for its linker.
  setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0);
}

std::map<std::string, std::string> software_of(const std::string& root, const std::string& pci) {
  std::map<std::string, std::string> out;
  utsname name{};
  uname(&name);
  const auto from_tree = [&](const char* file, const char* otherwise) {
    const auto text = first_line(root + "/proc/sys/kernel/" + file);
    return text.empty() && root.empty() ? std::string(otherwise) : text;
  };
  out["kernel"] = from_tree("osrelease", name.release);
  out["kernel_build"] = from_tree("version", name.version);
  out["canary"] = kVersion;
  const auto put = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  if (pci.empty()) return out;
  const auto device = device_dir(root, pci);
  const auto driver = driver_of(device);
  put("driver", driver);
  if (!driver.empty()) {
    put("driver_version", first_line(root + "/sys/module/" + driver + "/version"));
    put("driver_source", first_line(root + "/sys/module/" + driver + "/srcversion"));
  }
  put("vbios", first_line(device + "/vbios_version"));
  put("firmware", folder_hash(device + "/fw_version"));
  put("command_line", amdgpu_command_line(root));
  return out;
}

bool asleep(const std::string& root, const std::string& pci) {
  const auto status = first_line(device_dir(root, pci) + "/power/runtime_status");
  return status == "suspended" || status == "suspending";
}

bool on_battery(const std::string& root) {
  bool battery = false;
  for (const auto& supply : files_in(root + "/sys/class/power_supply")) {
    const auto type = first_line(supply + "/type");
    if (type == "Mains" && first_line(supply + "/online") == "1") return false;
    // Of the machine, not of a mouse.
    if (type == "Battery" && first_line(supply + "/scope") != "Device" &&
        first_line(supply + "/status") == "Discharging")
      battery = true;
  }
  return battery;
}

double link_gb_s(const std::string& root, const std::string& pci) {
  std::error_code error;
  auto dir = fs::canonical(device_dir(root, pci), error);
  double narrowest = 0;
  for (int depth = 0; !error && depth < 8 && dir.has_parent_path(); ++depth, dir = dir.parent_path()) {
    const double link = link_of(dir.string());
    if (link > 0 && (narrowest == 0 || link < narrowest)) narrowest = link;
    if (dir.filename().string().starts_with("pci")) break;
  }
  return narrowest;
}

std::map<std::string, std::string> card_state(const std::string& root, const std::string& pci) {
  std::map<std::string, std::string> out;
  const auto device = device_dir(root, pci);
  const auto speed = first_line(device + "/current_link_speed");
  if (!speed.empty()) out["link"] = speed + " x" + first_line(device + "/current_link_width");
  if (const double link = link_gb_s(root, pci); link > 0) out["link_negotiated_gb_s"] = std::to_string(link);
  if (driver_of(device) != "amdgpu" || asleep(root, pci)) return out;
  for (const auto& hwmon : files_in(device + "/hwmon")) {
    put_scaled(out, "clock_gfx_mhz", hwmon + "/freq1_input", 1e6);
    put_scaled(out, "clock_memory_mhz", hwmon + "/freq2_input", 1e6);
    put_scaled(out, "temperature_edge_c", hwmon + "/temp1_input", 1e3);
    put_scaled(out, "temperature_junction_c", hwmon + "/temp2_input", 1e3);
    put_scaled(out, "power_w", hwmon + "/power1_average", 1e6);
    put_scaled(out, "power_w", hwmon + "/power1_input", 1e6);
  }
  put_scaled(out, "vram_used_mib", device + "/mem_info_vram_used", 1048576);
  if (const auto level = first_line(device + "/power_dpm_force_performance_level"); !level.empty())
    out["performance_level"] = level;
  return out;
}

}  // namespace gpuhealth::canary
