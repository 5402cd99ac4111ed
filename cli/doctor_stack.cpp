// SPDX-License-Identifier: Apache-2.0
// The user's own stack: what runtimes see, what they know, and what changes their behaviour without a word.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "cli/doctor.hpp"
#include "core/units.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::cli {
namespace {

namespace fs = std::filesystem;
using telemetry::read_text_or_empty;

CheckResult result(CheckState state, std::string found, std::string advice = "") {
  return {"", state, std::move(found), "", std::move(advice)};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    out.push_back(it->path().filename().string());
  std::ranges::sort(out);
  return out;
}

template <class List>
std::string join(const List& list, const char* between = ", ") {
  return fmt::format("{}", fmt::join(list, between));
}

// --- ordinals --------------------------------------------------------------------------------------------------------

CheckResult check_ordinals(const Patient& p) {
  std::vector<std::string> seen;
  std::vector<std::string> trouble;
  std::map<std::string, std::map<std::string, int>> by_pci;
  for (const auto& device : p.runtimes) {
    if (!device.problem.empty()) {
      if (!device.absent) trouble.push_back(device.runtime + ": " + device.problem);
      continue;
    }
    seen.push_back(fmt::format("{} {} = {}", device.runtime, device.ordinal,
                               device.pci.empty() ? device.name + " (no PCI address)" : device.pci));
    if (!device.pci.empty()) by_pci[device.pci][device.runtime] = device.ordinal;
  }
  if (!trouble.empty())
    return result(CheckState::Missing, join(trouble, "; ") + (seen.empty() ? "" : "; " + join(seen)),
                  "a runtime that fails or hangs here does so in every program: see the kernel log and its versions");
  if (seen.empty()) return result(CheckState::Note, "no compute runtime sees a device (HIP, OpenCL, CUDA)");
  const bool differ = std::ranges::any_of(by_pci, [](const auto& gpu) {
    std::set<int> numbers;
    for (const auto& [runtime, number] : gpu.second) numbers.insert(number);
    return numbers.size() > 1;
  });
  if (!differ) return result(CheckState::Ok, join(seen));
  return result(CheckState::Note, join(seen),
                "the runtimes count differently: name GPUs by their address, or set CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

// --- who may use the nodes -------------------------------------------------------------------------------------------

std::string group_name(const std::string& root, unsigned gid) {
  std::ifstream file(root + "/etc/group");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (std::strtoul(line.c_str() + second + 1, nullptr, 10) == gid) return line.substr(0, first);
  }
  return std::to_string(gid);
}

CheckResult check_groups(const Patient& p) {
  std::vector<std::string> nodes;
  for (const auto& name : names_in(p.root + "/dev/dri")) {
    if (name.starts_with("renderD")) nodes.push_back("/dev/dri/" + name);
  }
  std::error_code error;
  if (fs::exists(p.root + "/dev/kfd", error)) nodes.emplace_back("/dev/kfd");
  if (nodes.empty()) return result(CheckState::Note, "there is no node of a GPU in /dev");
  std::set<std::string> wanted;
  std::vector<std::string> said;
  for (const auto& node : nodes) {
    struct stat about{};
    if (stat((p.root + node).c_str(), &about) != 0) continue;
    const auto group = group_name(p.root, about.st_gid);
    said.push_back(fmt::format("{} {} {:04o}", node, group, about.st_mode & 07777U));
    const bool for_group = (about.st_mode & 0060U) == 0060U;
    const bool member = std::ranges::find(p.groups, about.st_gid) != p.groups.end();
    if (!p.may_use(p.root + node) && !member) wanted.insert(for_group ? group : std::string());
  }
  if (wanted.empty()) return result(CheckState::Ok, join(said));
  if (wanted.contains(""))
    return result(CheckState::Missing, join(said),
                  "the nodes are closed to groups: the udev rules of the driver are missing");
  return result(CheckState::Missing, join(said),
                "sudo usermod -a -G " + join(wanted, ",") + " $USER, then log in again");
}

// --- architectures ---------------------------------------------------------------------------------------------------

// "gfx1100" -> "1100", "gfx90a" -> "90a", as the device libraries' files are named.
std::set<std::string> known_architectures(const std::string& root) {
  std::vector<std::string> folders = {"/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode",
                                      "/usr/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode"};
  for (const auto& name : names_in(root + "/opt")) {
    if (name.starts_with("rocm-")) folders.push_back("/opt/" + name + "/amdgcn/bitcode");
  }
  for (const auto& name : names_in(root + "/usr/lib/clang")) {
    folders.push_back("/usr/lib/clang/" + name + "/lib/amdgcn/bitcode");
    folders.push_back("/usr/lib/clang/" + name + "/amdgcn/bitcode");
  }
  constexpr std::string_view prefix = "oclc_isa_version_";
  std::set<std::string> out;
  for (const auto& folder : folders) {
    for (const auto& name : names_in(root + folder)) {
      if (!name.starts_with(prefix)) continue;
      out.insert("gfx" + name.substr(prefix.size(), name.find('.') - prefix.size()));
    }
  }
  return out;
}

CheckResult check_architectures(const Patient& p) {
  std::map<std::string, std::string> gpus;  // gfx -> a card
  std::vector<std::string> notes;
  if (const auto found = telemetry::list_gpus(p.root, notes)) {
    for (const auto& card : telemetry::kfd_cards(telemetry::read_kfd_topology(p.root), *found)) {
      for (const auto& node : card.nodes) gpus[node.gfx] = to_string(card.pci);
    }
  }
  gpus.erase("");
  if (gpus.empty()) return result(CheckState::Note, "the compute driver knows no GPU");
  const auto known = known_architectures(p.root);
  if (known.empty())
    return result(CheckState::Note, "no ROCm device library is installed",
                  "for HIP and OpenCL on AMD install ROCm's runtime (rocm-device-libs)");
  std::vector<std::string> unknown;
  std::vector<std::string> fine;
  for (const auto& [gfx, card] : gpus) (known.contains(gfx) ? fine : unknown).push_back(gfx + " of " + card);
  if (unknown.empty()) return result(CheckState::Ok, join(fine) + ": known");
  return result(CheckState::Missing, fmt::format("the installed device libraries do not know {}", join(unknown)),
                "install a newer ROCm; HSA_OVERRIDE_GFX_VERSION can make programs take code of a near relative");
}

// --- firmware --------------------------------------------------------------------------------------------------------

CheckResult check_firmware(const Patient& p) {
  if (!p.firmware_missing.empty())
    return result(CheckState::Missing, "the kernel log says: " + p.firmware_missing,
                  "install firmware-amd-graphics (Debian) or linux-firmware, rebuild the initramfs, reboot");
  std::vector<std::string> notes;
  const auto gpus = telemetry::list_gpus(p.root, notes);
  if (!gpus || gpus->empty()) return result(CheckState::Note, "no AMD GPU on the PCI bus");
  for (const char* folder : {"/lib/firmware/amdgpu", "/usr/lib/firmware/amdgpu", "/lib/firmware/updates/amdgpu"}) {
    const auto files = names_in(p.root + folder);
    if (!files.empty()) return result(CheckState::Ok, fmt::format("{}: {} files", folder, files.size()));
  }
  return result(CheckState::Missing, "there is no firmware of amdgpu in /lib/firmware",
                "install firmware-amd-graphics (Debian) or linux-firmware, rebuild the initramfs, reboot");
}

// --- what changes behaviour ------------------------------------------------------------------------------------------

struct Variable {
  std::string_view name;
  std::string_view effect;
};
constexpr std::array kVariables = std::to_array<Variable>({
    {"AMD_SERIALIZE_KERNEL", "kernels wait for each other"},
    {"CUDA_DEVICE_ORDER", "numbers of NVIDIA's GPUs"},
    {"CUDA_LAUNCH_BLOCKING", "each launch waits"},
    {"CUDA_VISIBLE_DEVICES", "hides and renumbers GPUs"},
    {"GPU_DEVICE_ORDINAL", "hides and renumbers GPUs"},
    {"GPU_MAX_HW_QUEUES", "fewer queues"},
    {"HIP_LAUNCH_BLOCKING", "each launch waits"},
    {"HIP_VISIBLE_DEVICES", "hides and renumbers GPUs"},
    {"HSA_ENABLE_SDMA", "0: copies by kernels, not by the copy engines"},
    {"HSA_OVERRIDE_GFX_VERSION", "the GPU passes for another one"},
    {"HSA_XNACK", "page faults are retried: slower, and not on every GPU"},
    {"HSA_TOOLS_LIB", "a tool sits in every program"},
    {"LIBGL_ALWAYS_SOFTWARE", "no GPU for OpenGL"},
    {"OCL_ICD_VENDORS", "other OpenCL drivers than the system's"},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "each allocation goes to the driver"},
    {"ROCR_VISIBLE_DEVICES", "hides and renumbers GPUs"},
    {"ROC_ENABLE_PRE_VEGA", "old GPUs for OpenCL"},
});

// "export NAME=VALUE" and "NAME=VALUE" of the files that set variables for everybody.
std::map<std::string, std::string> variables_of_files(const std::string& root) {
  std::vector<std::string> files = {"/etc/environment"};
  for (const auto& name : names_in(root + "/etc/profile.d")) files.push_back("/etc/profile.d/" + name);
  std::map<std::string, std::string> out;
  for (const auto& path : files) {
    std::ifstream file(root + path);
    for (std::string line; std::getline(file, line);) {
      const auto begin = line.find_first_not_of(" \t");
      if (begin == std::string::npos) continue;
      std::string_view text = std::string_view(line).substr(begin);
      if (text.starts_with("export ")) text.remove_prefix(7);
      const auto equals = text.find('=');
      if (equals != std::string_view::npos) out[std::string(text.substr(0, equals))] = path;
    }
  }
  return out;
}

CheckResult check_environment(const Patient& p) {
  const auto of_files = variables_of_files(p.root);
  std::vector<std::string> set;
  for (const auto& row : kVariables) {
    const std::string name(row.name);
    const auto value = p.variable ? p.variable(name) : std::nullopt;
    const auto in_file = of_files.find(name);
    if (!value && in_file == of_files.end()) continue;
    set.push_back(name + (value ? "=" + *value : "") + (in_file != of_files.end() ? " (" + in_file->second + ")" : "") +
                  ": " + std::string(row.effect));
  }
  if (set.empty()) return result(CheckState::Ok, "no variable that changes GPU programs is set");
  return result(CheckState::Note, join(set, "; "), "unset what is not meant, and compare speed without it");
}

struct Parameter {
  std::string_view name;
  std::string_view usual;  // as /sys prints it; several parted by '|'
  std::string_view effect;
};
// Defaults of Linux 6.1 to 6.12, amdgpu_drv.c.
constexpr std::array kParameters = std::to_array<Parameter>({
    {"aspm", "-1", "power saving of the link"},
    {"bad_page_threshold", "-1", "how many bad pages the driver bears"},
    {"cwsr_enable", "1", "0: compute work cannot be interrupted"},
    {"dpm", "-1", "0: no power management, no sensors"},
    {"gpu_recovery", "-1", "0: a hung GPU is not reset"},
    {"halt_if_hws_hang", "0", "a hung scheduler stops the GPU"},
    {"lockup_timeout", "|(null)", "how long a job may take"},
    {"mes", "0|-1", "who schedules compute work"},
    {"msi", "-1", "interrupts"},
    {"noretry", "-1", "retry of page faults (XNACK)"},
    {"pcie_gen_cap", "0", "highest PCIe generation"},
    {"pcie_lane_cap", "0", "PCIe lanes"},
    {"ppfeaturemask", "0xfff7bfff|0xffffbfff|4294426623|4294950911", "power features, overclocking"},
    {"ras_enable", "-1", "0: memory errors are not counted"},
    {"reset_method", "-1", "how it is reset"},
    {"runpm", "-1|-2", "sleep of idle GPUs"},
    {"sched_policy", "0", "2: compute without the hardware scheduler"},
    {"vm_fault_stop", "0", "page faults stop the GPU"},
    {"vm_update_mode", "-1", "who writes page tables"},
});

bool is_usual(std::string_view usual, std::string_view value) {
  for (;;) {
    const auto bar = usual.find('|');
    if (usual.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    usual.remove_prefix(bar + 1);
  }
}

CheckResult check_parameters(const Patient& p) {
  const std::string folder = p.root + "/sys/module/amdgpu/parameters/";
  std::error_code error;
  if (!fs::is_directory(folder, error)) return result(CheckState::Note, "amdgpu is not loaded");
  std::vector<std::string> changed;
  for (const auto& row : kParameters) {
    const std::string file = folder + std::string(row.name);
    if (!fs::exists(file, error)) continue;
    const auto value = read_text_or_empty(file);
    if (!is_usual(row.usual, value)) changed.push_back(fmt::format("amdgpu.{}={}: {}", row.name, value, row.effect));
  }
  if (changed.empty()) return result(CheckState::Ok, "amdgpu runs with its own defaults");
  return result(CheckState::Note, join(changed, "; "),
                "set in /etc/modprobe.d or on the kernel's command line; take out what is not meant");
}

// --- drivers and ROCm ------------------------------------------------------------------------------------------------

CheckResult check_modules(const Patient& p) {
  std::vector<std::string> foreign;
  std::vector<std::string> own;
  for (const char* module : {"amdgpu", "amdkcl", "i915", "xe", "nouveau", "nvidia", "nvidia_uvm"}) {
    const std::string folder = p.root + "/sys/module/" + module;
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    const auto version = read_text_or_empty(folder + "/version");
    const auto taint = read_text_or_empty(folder + "/taint");
    const auto source = read_text_or_empty(folder + "/srcversion");
    auto text =
        std::string(module) + (version.empty() ? "" : " " + version) + (source.empty() ? "" : ", srcversion " + source);
    if (taint.find_first_of("OPEF") == std::string::npos) {
      own.push_back(std::move(text));
      continue;
    }
    std::vector<std::string> why;
    if (taint.find('P') != std::string::npos) why.emplace_back("proprietary");
    if (taint.find('O') != std::string::npos) why.emplace_back("built outside the kernel");
    if (taint.find('E') != std::string::npos) why.emplace_back("not signed");
    if (taint.find('F') != std::string::npos) why.emplace_back("loaded by force");
    foreign.push_back(text + " (" + join(why) + ")");
  }
  if (foreign.empty() && own.empty()) return result(CheckState::Note, "no GPU driver is loaded as a module");
  if (foreign.empty()) return result(CheckState::Ok, join(own) + ": the kernel's own");
  return result(CheckState::Note, join(foreign, "; ") + (own.empty() ? "" : "; " + join(own)),
                "when something fails after a kernel update, check that this module was built for it (dkms status)");
}

CheckResult check_rocm_versions(const Patient& p) {
  std::set<std::string> versions;
  for (const auto& name : names_in(p.root + "/opt")) {
    if (!name.starts_with("rocm")) continue;
    std::error_code error;
    if (fs::is_symlink(p.root + "/opt/" + name, error)) continue;
    const auto version = read_text_or_empty(p.root + "/opt/" + name + "/.info/version");
    versions.insert("/opt/" + name + (version.empty() ? "" : " (" + version + ")"));
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib", "/usr/lib"}) {
    for (const auto& name : names_in(p.root + folder)) {
      const bool runtime = name.starts_with("libhsa-runtime64.so.1.") || name.starts_with("libamdhip64.so.");
      std::error_code error;
      if (runtime && !fs::is_symlink(p.root + folder + "/" + name, error))
        versions.insert(std::string(folder) + "/" + name);
    }
  }
  std::set<std::string> places;
  for (const auto& version : versions)
    places.insert(version.starts_with("/opt/") ? version : version.substr(0, version.rfind('/')));
  if (versions.empty()) return result(CheckState::Note, "ROCm is not installed");
  if (places.size() == 1) return result(CheckState::Ok, join(versions));
  std::error_code error;
  const auto link = fs::read_symlink(p.root + "/opt/rocm", error);
  return result(CheckState::Note, join(versions) + (error ? "" : "; /opt/rocm leads to " + link.string()),
                "several ROCm versions side by side: see that a program's libraries are all of one (ldd)");
}

constexpr std::array<Check, 8> kStackChecks = {{
    {"device numbers", "programs are told which GPU to use by a runtime's own number", check_ordinals},
    {"node groups", "who may open a GPU's nodes is a matter of their group", check_groups},
    {"architectures", "code for a GPU that a runtime does not know fails or runs on the processor",
     check_architectures},
    {"firmware", "without its firmware files a GPU does not start", check_firmware},
    {"environment", "some variables change speed or hide GPUs, and are forgotten", check_environment},
    {"module parameters", "some change how the driver schedules, resets or saves power", check_parameters},
    {"driver modules", "a driver from elsewhere has bugs and fixes of its own", check_modules},
    {"ROCm versions", "a program that mixes two versions fails in odd ways", check_rocm_versions},
}};

}  // namespace

std::span<const Check> stack_checks() {
  return kStackChecks;
}

}  // namespace gpuhealth::cli
