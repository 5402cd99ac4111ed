// SPDX-License-Identifier: Apache-2.0
#include "sim/tree.hpp"

#include <fmt/format.h>

#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/cpu_files.hpp"
#include "sim/device_files.hpp"
#include "sim/folder.hpp"
#include "sim/kfd.hpp"

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

const PciAddress kNoPort{};
constexpr unsigned kProcessors = 2;

struct Port {
  PciAddress address;
  PortKind kind;
};

std::vector<Port> ports_of(const Card& card) {
  std::vector<Port> ports = {{card.place.root_port, PortKind::Root}};
  if (card.place.switch_up != kNoPort) {
    ports.push_back({card.place.switch_up, PortKind::SwitchUp});
    ports.push_back({card.place.switch_down, PortKind::SwitchDown});
  }
  return ports;
}

// "hwmon/temp1_input" -> "hwmon/hwmon2/temp1_input".
fs::path numbered(const std::string& file, const std::string& hwmon) {
  constexpr std::string_view kPrefix = "hwmon/";
  if (!file.starts_with(kPrefix)) return file;
  return fs::path("hwmon") / hwmon / file.substr(kPrefix.size());
}

void write_files(Folder& sys, const fs::path& function, const std::vector<FileText>& files,
                 const std::string& hwmon = "") {
  for (const FileText& file : files) sys.file(function / numbered(file.path, hwmon), file.bytes);
}

void link_function(Folder& sys, const fs::path& function, std::string_view driver) {
  const fs::path bdf = function.filename();
  sys.link("bus/pci/devices" / bdf, function);
  sys.link(function / "subsystem", "bus/pci");
  if (driver.empty()) return;
  const fs::path driver_dir = fs::path("bus/pci/drivers") / driver;
  sys.link(driver_dir / bdf, function);
  sys.link(function / "driver", driver_dir);
}

void write_drm_node(Folder& sys, const fs::path& gpu, const std::string& name, unsigned minor) {
  const fs::path node = gpu / "drm" / name;
  sys.file(node / "dev", fmt::format("226:{}\n", minor));
  sys.file(node / "uevent", fmt::format("MAJOR=226\nMINOR={}\nDEVNAME=dri/{}\nDEVTYPE=drm_minor\n", minor, name));
  sys.link(node / "device", gpu);
  sys.link(node / "subsystem", "class/drm");
  sys.link(fs::path("class/drm") / name, node);
  sys.link(fs::path("dev/char") / fmt::format("226:{}", minor), node);
}

// Writes a card's functions from its root port down; `number` is that of its cardN.
void write_card(Folder& sys, const Card& card, unsigned number) {
  fs::path function = "devices/pci0000:00";
  for (const Port& port : ports_of(card)) {
    function /= to_string(port.address);
    write_files(sys, function, fixed_port_files(card, port.kind));
    write_files(sys, function, live_port_files(card, port.kind));
    link_function(sys, function, "pcieport");
  }
  function /= to_string(card.place.gpu);
  const std::string hwmon = fmt::format("hwmon{}", number + 2);
  write_files(sys, function, fixed_files(card), hwmon);
  write_files(sys, function, live_files(card), hwmon);
  link_function(sys, function, card.state.driver_bound ? "amdgpu" : "");
  if (!card.state.driver_bound) return;

  sys.link(function / "hwmon" / hwmon / "device", function);
  sys.link(function / "hwmon" / hwmon / "subsystem", "class/hwmon");
  sys.link(fs::path("class/hwmon") / hwmon, function / "hwmon" / hwmon);
  write_drm_node(sys, function, fmt::format("card{}", number), number);
  write_drm_node(sys, function, fmt::format("renderD{}", 128 + number), 128 + number);
  write_kfd_node(sys, card, number + 1, 128 + number);
}

void write_module(Folder& sys, const MachineFacts& facts) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kParameters = {
      {{"runpm", "-1"},
       {"ppfeaturemask", "0xfff7bfff"},
       {"aspm", "-1"},
       {"lockup_timeout", ""},
       {"gpu_recovery", "-1"},
       {"noretry", "-1"},
       {"sched_policy", "0"},
       {"cwsr_enable", "1"},
       {"mes", "0"},
       {"uni_mes", "1"},
       {"ras_enable", "-1"},
       {"ras_mask", "4294967295"},
       {"bad_page_threshold", "-1"},
       {"pcie_gen_cap", "0"},
       {"pcie_lane_cap", "0"},
       {"reset_method", "-1"}}};
  const fs::path module = "module/amdgpu";
  for (const auto& [name, value] : kParameters) sys.file(module / "parameters" / name, fmt::format("{}\n", value));
  sys.file(module / "initstate", "live\n");
  sys.file(module / "srcversion", "5EE05EE05EE05EE05EE05EE\n");
  if (!facts.dkms_version.empty()) sys.file(module / "version", facts.dkms_version + "\n");
}

void write_proc(Folder& proc, const MachineFacts& facts) {
  proc.file("sys/kernel/random/boot_id", facts.boot_id + "\n");
  proc.file("sys/kernel/osrelease", facts.kernel_release + "\n");
  proc.file("version", fmt::format("Linux version {} (synthetic machine)\n", facts.kernel_release));
  proc.file("cmdline", fmt::format("BOOT_IMAGE=/boot/vmlinuz-{} root=/dev/sda1 ro quiet\n", facts.kernel_release));
}

Result<std::string> hwmon_name(const fs::path& function) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(function / "hwmon", error)) return entry.path().filename().string();
  return fail(ErrorCode::NotFound, function.string() + " has no hwmon folder");
}

// Removes the links in `folder` that lead into `gone`, a canonical path.
void unlink_into(const fs::path& folder, const fs::path& gone) {
  std::error_code ignored;
  std::vector<fs::path> links;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_symlink(ignored)) continue;
    const fs::path inside = fs::weakly_canonical(entry.path(), ignored).lexically_relative(gone);
    if (!inside.empty() && *inside.begin() != "..") links.push_back(entry.path());
  }
  for (const fs::path& link : links) fs::remove(link, ignored);
}

// A port below another port belongs to the card's own switch; a root port lies directly in the host bridge's folder.
bool is_card_switch(const fs::path& port) {
  std::error_code ignored;
  return fs::exists(port.parent_path() / "uevent", ignored);
}

}  // namespace

Result<void> write_machine(const fs::path& dir, std::span<const Card> cards, const MachineFacts& facts) {
  std::error_code error;
  fs::create_directories(dir, error);
  const fs::path root = fs::canonical(dir, error);
  if (error) return fail_errno("cannot create " + dir.string(), error.value());
  for (const char* part : {"sys", "proc"}) {
    fs::remove_all(root / part, error);
    if (error) return fail_errno("cannot clear " + (root / part).string(), error.value());
  }
  Folder sys(root / "sys");
  for (const char* folder :
       {"class/drm", "class/hwmon", "bus/pci/devices", "bus/pci/drivers/amdgpu", "devices/pci0000:00"})
    sys.dir(folder);
  sys.file("class/drm/version", "drm 1.1.0 20060810\n");
  sys.link("bus/pci/drivers/amdgpu/module", "module/amdgpu");
  write_module(sys, facts);
  write_kfd_root(sys);
  write_cpus(sys, kProcessors);
  for (std::size_t i = 0; i < cards.size(); ++i) write_card(sys, cards[i], static_cast<unsigned>(i));
  Folder proc(root / "proc");
  write_proc(proc, facts);
  if (Result<void> written = sys.result(); !written) return written;
  return proc.result();
}

Result<void> add_card(const fs::path& dir, const Card& card) {
  Folder sys(dir / "sys");
  std::error_code ignored;
  unsigned number = 0;
  while (fs::exists(sys.root() / "class/drm" / fmt::format("card{}", number), ignored)) ++number;
  write_card(sys, card, number);
  return sys.result();
}

Result<fs::path> function_dir(const fs::path& dir, const PciAddress& function) {
  const fs::path link = dir / "sys/bus/pci/devices" / to_string(function);
  std::error_code error;
  fs::path target = fs::canonical(link, error);
  if (error) return fail_errno("no PCI function " + to_string(function) + " below " + dir.string(), error.value());
  return target;
}

Result<void> remove_card(const fs::path& dir, const PciAddress& gpu) {
  Result<fs::path> function = function_dir(dir, gpu);
  if (!function) return tl::unexpected(function.error());
  fs::path gone = *function;
  // Downstream and upstream port of the card's own switch lie between the GPU and its root port.
  while (is_card_switch(gone.parent_path())) gone = gone.parent_path();
  const fs::path sys = dir / "sys";
  for (const char* folder : {"class/drm", "class/hwmon", "bus/pci/devices", "bus/pci/drivers/amdgpu",
                             "bus/pci/drivers/pcieport", "dev/char"})
    unlink_into(sys / folder, gone);
  remove_kfd_node(sys, gpu);
  std::error_code error;
  fs::remove_all(gone, error);
  if (error) return fail_errno("cannot remove " + gone.string(), error.value());
  return {};
}

Result<void> update_card(const fs::path& dir, const Card& card) {
  for (const Port& port : ports_of(card)) {
    Result<fs::path> function = function_dir(dir, port.address);
    if (!function) return tl::unexpected(function.error());
    for (const FileText& file : live_port_files(card, port.kind))
      if (Result<void> written = write_in_place(*function / file.path, file.bytes); !written) return written;
  }
  for (const FileText& file : live_files(card))
    if (Result<void> written = write_file(dir, card.place.gpu, file.path, file.bytes); !written) return written;
  return {};
}

Result<void> write_file(const fs::path& dir, const PciAddress& function, std::string_view file,
                        std::string_view bytes) {
  Result<fs::path> folder = function_dir(dir, function);
  if (!folder) return tl::unexpected(folder.error());
  if (!file.starts_with("hwmon/")) return write_in_place(*folder / file, bytes);
  Result<std::string> hwmon = hwmon_name(*folder);
  if (!hwmon) return tl::unexpected(hwmon.error());
  return write_in_place(*folder / numbered(std::string(file), *hwmon), bytes);
}

Result<void> set(const fs::path& dir, const PciAddress& function, std::string_view file, std::string_view value) {
  return write_file(dir, function, file, std::string(value) + "\n");
}

}  // namespace gpuhealth::sim
