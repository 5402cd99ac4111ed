// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/json.hpp"

namespace gpuhealth::cli {
namespace {

namespace fs = std::filesystem;

CheckResult ok(std::string found) {
  return {"", CheckState::Ok, std::move(found), "", ""};
}
CheckResult missing(std::string found, std::string advice) {
  return {"", CheckState::Missing, std::move(found), "", std::move(advice)};
}
CheckResult note(std::string found, std::string advice = "") {
  return {"", CheckState::Note, std::move(found), "", std::move(advice)};
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.pop_back();
  return line;
}

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    out.push_back(it->path());
  std::ranges::sort(out);
  return out;
}

struct Card {
  fs::path folder;
  std::string driver;  // empty when none is bound
};

// AMD's display controllers (PCI class 03) and processing accelerators (class 12).
std::vector<Card> amd_cards(const Patient& patient) {
  std::vector<Card> cards;
  for (const auto& folder : entries(patient.root + "/sys/bus/pci/devices")) {
    const std::string pci_class = first_line(folder / "class");
    if (first_line(folder / "vendor") != "0x1002") continue;
    if (!pci_class.starts_with("0x03") && !pci_class.starts_with("0x12")) continue;
    std::error_code error;
    const auto driver = fs::read_symlink(folder / "driver", error);
    cards.push_back({folder, error ? "" : driver.filename().string()});
  }
  return cards;
}

std::string names_of(const std::vector<Card>& cards) {
  std::string names;
  for (const Card& c : cards) names += (names.empty() ? "" : ", ") + c.folder.filename().string();
  return names;
}

std::string first_existing(const Patient& patient, std::span<const std::string_view> paths) {
  for (const auto path : paths) {
    if (exists(patient.root + std::string(path))) return std::string(path);
  }
  return "";
}

CheckResult check_daemon(const Patient& p) {
  if (p.manager) return ok("running, version " + p.manager->version);
  return missing(p.daemon_problem.empty() ? "not running" : p.daemon_problem, "sudo systemctl enable --now gpuhealthd");
}

CheckResult check_bus_policy(const Patient& p) {
  constexpr std::array<std::string_view, 3> paths = {"/usr/share/dbus-1/system.d/org.gpuhealth1.conf",
                                                     "/etc/dbus-1/system.d/org.gpuhealth1.conf",
                                                     "/usr/local/share/dbus-1/system.d/org.gpuhealth1.conf"};
  const std::string path = first_existing(p, paths);
  if (!path.empty()) return ok(path);
  return missing("org.gpuhealth1.conf is in none of the bus's folders", "install the package, or run cmake --install");
}

CheckResult check_polkit(const Patient& p) {
  constexpr std::array<std::string_view, 2> paths = {"/usr/share/polkit-1/actions/org.gpuhealth1.policy",
                                                     "/usr/local/share/polkit-1/actions/org.gpuhealth1.policy"};
  const std::string path = first_existing(p, paths);
  if (!path.empty()) return ok(path);
  return missing("org.gpuhealth1.policy is not installed", "install the package, or run cmake --install");
}

CheckResult check_driver(const Patient& p) {
  const auto cards = amd_cards(p);
  if (exists(p.root + "/sys/module/amdgpu")) {
    const std::string version = first_line(p.root + "/sys/module/amdgpu/version");
    return ok("amdgpu is loaded" + (version.empty() ? "" : ", DKMS version " + version));
  }
  if (cards.empty()) return note("not loaded, and there is no AMD GPU on the PCI bus");
  return missing("amdgpu is not loaded", "sudo modprobe amdgpu, and look at the kernel log if that fails");
}

CheckResult check_cards(const Patient& p) {
  const auto cards = amd_cards(p);
  std::vector<Card> without;
  std::ranges::copy_if(cards, std::back_inserter(without), [](const Card& c) { return c.driver.empty(); });
  if (cards.empty()) return note("no AMD GPU on the PCI bus");
  if (!without.empty())
    return missing("no driver is bound to " + names_of(without), "look in the kernel log for amdgpu errors");
  return ok("each AMD GPU has a driver: " + names_of(cards));
}

CheckResult check_hwmon(const Patient& p) {
  std::vector<Card> without;
  std::size_t bound = 0;
  for (const Card& card : amd_cards(p)) {
    if (card.driver != "amdgpu") continue;
    ++bound;
    if (entries(card.folder / "hwmon").empty()) without.push_back(card);
  }
  if (bound == 0) return note("no GPU is driven by amdgpu");
  if (without.empty()) return ok(fmt::format("sensors of {} {}", bound, bound == 1 ? "GPU" : "GPUs"));
  return missing("no sensors at " + names_of(without),
                 "power management is off or failed: see amdgpu.dpm and the kernel log");
}

CheckResult check_kfd(const Patient& p) {
  if (!exists(p.root + "/dev/kfd")) return note("there is no /dev/kfd; compute through ROCm is not possible here");
  if (p.may_use(p.root + "/dev/kfd")) return ok("you may use /dev/kfd");
  return missing("you may not use /dev/kfd", "sudo usermod -a -G render,video $USER, then log in again");
}

CheckResult check_dri(const Patient& p) {
  std::vector<std::string> refused;
  std::size_t nodes = 0;
  for (const auto& node : entries(p.root + "/dev/dri")) {
    if (!node.filename().string().starts_with("renderD")) continue;
    ++nodes;
    if (!p.may_use(node)) refused.push_back("/dev/dri/" + node.filename().string());
  }
  if (nodes == 0) return note("there is no render node below /dev/dri");
  if (refused.empty()) return ok("you may use each render node");
  return missing(fmt::format("you may not use {}", fmt::join(refused, ", ")),
                 "sudo usermod -a -G render,video $USER, then log in again");
}

CheckResult check_names(const Patient& p) {
  constexpr std::array<std::string_view, 3> paths = {
      "/usr/share/libdrm/amdgpu.ids", "/usr/local/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids"};
  const std::string path = first_existing(p, paths);
  if (!path.empty()) return ok(path);
  return missing("libdrm's table of names is not there; only our own names are used",
                 "install libdrm-common (libdrm on Fedora)");
}

struct KernelNote {
  std::string_view release;  // what uname -r begins with; a digit must not follow
  std::string_view text;
  std::string_view advice;
};
// Only releases that people reported; drm/amdkfd commit c08972f55594 without 342981fff328.
constexpr std::string_view kStall = "copies from files to the GPU can take seconds on this kernel";
constexpr std::array<KernelNote, 3> kKernelNotes = {{
    {"7.0.12", kStall, "use 7.0.13 or newer, or boot the kernel before"},
    {"7.0.0-28", kStall, "use 7.0.0-30 or newer, or boot the kernel before"},
    {"7.0.0-29", kStall, "use 7.0.0-30 or newer, or boot the kernel before"},
}};

CheckResult check_kernel(const Patient& p) {
  const std::string release = first_line(p.root + "/proc/sys/kernel/osrelease");
  if (release.empty()) return note("the kernel's release is not known");
  for (const KernelNote& row : kKernelNotes) {
    const bool ends = release.size() == row.release.size() ||
                      (release.size() > row.release.size() &&
                       std::isdigit(static_cast<unsigned char>(release[row.release.size()])) == 0);
    if (release.starts_with(row.release) && ends)
      return note(release + ": " + std::string(row.text), std::string(row.advice));
  }
  return ok(release);
}

CheckResult check_rocm_smi(const Patient& p) {
  constexpr std::array<std::string_view, 6> folders = {
      "/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
      "/usr/local/lib"};
  for (const auto folder : folders) {
    for (const auto& file : entries(p.root + std::string(folder))) {
      if (file.filename().string().starts_with("librocm_smi64.so"))
        return ok(std::string(folder) + "/" + file.filename().string());
    }
  }
  return note("librocm_smi64 is not installed",
              "install rocm-smi-lib (librocm-smi64-1 on Debian) for a second opinion");
}

CheckResult check_history(const Patient& p) {
  if (!p.manager) return note("not known without the daemon");
  if (p.manager->store_problem.empty()) return ok("works");
  return missing(p.manager->store_problem, "look at /var/lib/gpuhealthd and the free space there");
}

CheckResult check_configuration(const Patient& p) {
  if (!p.manager) return note("not known without the daemon");
  if (p.manager->config_problem.empty()) return ok("loaded");
  return missing(p.manager->config_problem, "correct the file, then sudo systemctl reload gpuhealthd");
}

constexpr std::array<Check, 13> kMachineChecks = {{
    {"daemon", "without it nothing watches the GPUs", check_daemon},
    {"bus policy", "without it the daemon may not own its name on the bus", check_bus_policy},
    {"polkit actions", "without them only root may acknowledge a condition", check_polkit},
    {"amdgpu driver", "without it an AMD GPU can be neither used nor watched", check_driver},
    {"cards", "a card without a driver is on the bus and useless", check_cards},
    {"sensors", "temperatures, power, fans and clocks come from there", check_hwmon},
    {"compute access", "ROCm programs open /dev/kfd", check_kfd},
    {"render access", "GPU programs open a render node", check_dri},
    {"GPU names", "GPUs are called by their product's name", check_names},
    {"kernel", "some kernel releases slow GPUs down", check_kernel},
    {"ROCm SMI library", "a second opinion on what sysfs says", check_rocm_smi},
    {"history", "plots and the comparison with yesterday need it", check_history},
    {"configuration", "a file that does not load leaves the last good one in force", check_configuration},
}};

}  // namespace

std::string_view to_string(CheckState state) {
  constexpr std::array<std::string_view, 3> names = {"ok", "missing", "note"};
  return names.at(static_cast<std::size_t>(state));
}

std::span<const Check> all_checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> out(kMachineChecks.begin(), kMachineChecks.end());
    out.insert(out.end(), stack_checks().begin(), stack_checks().end());
    return out;
  }();
  return all;
}

std::optional<RuntimeSeen> parse_runtime_line(std::string_view line) {
  const auto json = parse_json<nlohmann::json>(line);
  if (!json.is_object() || !json.contains("runtime") || !json["runtime"].is_string()) return std::nullopt;
  const auto text = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  RuntimeSeen out;
  out.runtime = text("runtime");
  out.problem = text("problem");
  out.pci = text("pci");
  out.name = text("name");
  if (const auto it = json.find("ordinal"); it != json.end() && it->is_number_integer()) out.ordinal = it->get<int>();
  out.absent = out.problem.starts_with("not installed") || out.problem.starts_with("it sees no device") ||
               out.problem.starts_with("it finds no device");
  return out;
}

std::vector<CheckResult> examine(const Patient& patient) {
  std::vector<CheckResult> results;
  for (const Check& check : all_checks()) {
    CheckResult result = check.run(patient);
    result.name = check.name;
    result.why = check.why;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace gpuhealth::cli
