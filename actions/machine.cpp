// SPDX-License-Identifier: Apache-2.0
#include "actions/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <thread>

#include "actions/logind.hpp"
#include "core/boot_id.hpp"
#include "grub/operations.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/pcie_link.hpp"

namespace gpuhealth::actions {
namespace {

std::string below(const Tree& tree, const std::string& path) {
  return tree.running() || !path.starts_with(tree.root()) ? path : path.substr(tree.root().size());
}

std::string trim(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

int utc_offset_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return static_cast<int>(parts.tm_gmtoff);
}

}  // namespace

std::string sysroot_of(const Tree& tree) {
  return tree.running() ? std::string() : tree.root();
}

Outside real_outside(System& system, const Tree& hardware) {
  Outside out;
  out.system = &system;
  out.run = run_program;
  out.inhibitors = logind_inhibitors;
  out.reboot = logind_reboot;
  out.journal = journal_line;
  out.pause = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  out.kernel = [&system] { return grub::real_surroundings(system); };
  out.now = SystemClock().now().wall;
  out.boot_id = read_boot_id(sysroot_of(hardware)).value_or("");
  out.host = host_name();
  out.utc_offset_s = utc_offset_now();
  return out;
}

Result<Target> find_target(const Machine& machine, const std::string& device) {
  const std::string root = sysroot_of(machine.hardware);
  const auto found = telemetry::discover(root, {});
  if (!found) return tl::unexpected<Error>(found.error());
  const auto address = parse_pci_address(device);
  std::string all;
  for (const DeviceInfo& info : found->devices) {
    if (info.id() != device && (!address || !(info.pci == *address))) {
      all += (all.empty() ? "" : ", ") + to_string(info.pci);
      continue;
    }
    Target out;
    out.info = info;
    out.id = info.id();
    out.pci = to_string(info.pci);
    out.dir = "/sys/bus/pci/devices/" + out.pci;
    const std::string real = telemetry::device_dir(root, info.pci);
    out.hwmon = below(machine.hardware, telemetry::hwmon_dir(real));
    const auto chain = telemetry::find_pcie_chain(real);
    out.slot = below(machine.hardware, chain.platform_end);
    out.card_end = below(machine.hardware, chain.card_end);
    return out;
  }
  return fail(ErrorCode::NotFound, "there is no AMD GPU " + device + " on the bus" +
                                       (all.empty() ? std::string("; there is none at all") : "; there are " + all));
}

Result<void> must_be_awake(const Machine& machine, const Target& target) {
  const std::string state = value_of(machine, target.dir + "/power/runtime_status");
  // An absent file is a kernel or a device without runtime power management.
  if (state.empty() || state == "active" || state == "unsupported") return {};
  return fail(ErrorCode::Unavailable,
              target.pci + " sleeps (" + state + "): it is left asleep, nothing that we could write would last");
}

Result<std::string> read_value(const Machine& machine, const std::string& path) {
  const auto text = machine.hardware.read(path, std::size_t{1} << 20);
  if (!text) return tl::unexpected<Error>(text.error());
  return trim(*text);
}

std::string value_of(const Machine& machine, const std::string& path) {
  return read_value(machine, path).value_or("");
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.empty() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string find_program(const Machine& machine, std::string_view name) {
  for (const std::string_view folder :
       {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/slurm/bin"}) {
    const std::string path = sysroot_of(machine.files) + std::string(folder) + "/" + std::string(name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

}  // namespace gpuhealth::actions
