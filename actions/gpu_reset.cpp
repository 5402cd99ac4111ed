// SPDX-License-Identifier: Apache-2.0
// The driver's own recovery, by reading amdgpu_gpu_recover in debugfs: the one way that brings a bound driver up again.
// Without a driver the PCI core's reset. Nothing of debugfs but these two names is ever opened: other files there act
// when they are read, too.
#include "actions/actuator.hpp"
#include "actions/pci_config.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::string_view kDebug = "/sys/kernel/debug/dri/";

std::string recover_file(const Machine& machine, const Target& target) {
  for (const std::string& name : machine.hardware.list(kDebug)) {
    const std::string folder = std::string(kDebug) + name;
    // "amdgpu dev=0000:03:00.0 unique=0000:03:00.0": folders are numbers on older kernels.
    const bool ours =
        name == target.pci || value_of(machine, folder + "/name").find("dev=" + target.pci + " ") != std::string::npos;
    if (ours && machine.hardware.is_file(folder + "/amdgpu_gpu_recover")) return folder + "/amdgpu_gpu_recover";
  }
  return {};
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  const Target& target = *asked.target;
  if (auto awake = must_be_awake(machine, target); !awake) return tl::unexpected<Error>(awake.error());
  Plan out;
  out.entry.before = "as it is";
  out.entry.wanted = "reset";
  if (target.info.driver == "amdgpu") {
    const std::string file = recover_file(machine, target);
    if (file.empty())
      return fail(ErrorCode::Unavailable, "there is no safe way to reset " + target.pci +
                                              " under its driver: debugfs has no amdgpu_gpu_recover for it (not "
                                              "mounted, or the kernel is locked down)");
    out.entry.steps = {{"read", file, 0, 0, {}}};
    out.entry.facts["way"] = "amdgpu_gpu_recover";
    return out;
  }
  if (!target.info.driver.empty())
    return fail(ErrorCode::Unavailable, target.pci + " belongs to the driver " + target.info.driver +
                                            ", which is not ours to reset (a virtual machine may have it)");
  if (value_of(machine, target.dir + "/reset_method").empty())
    return fail(ErrorCode::Unavailable, target.pci + " has no way to be reset alone; pci-rescan or a reboot is left");
  out.entry.steps = {value_step(target.dir + "/reset", "1")};
  out.entry.facts["way"] = "pci-reset";
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const auto vendor = read_config(machine, "/sys/bus/pci/devices/" + entry.target + "/config", 0);
  if (!vendor) return tl::unexpected<Error>(vendor.error());
  return std::string("reset");
}

}  // namespace

const Actuator kGpuReset = {.kind = ActionKind::GpuReset,
                            .on_device = true,
                            .recovery = Recovery::Note,
                            .needs_idle = true,
                            .needs_dark = true,
                            .plan = plan,
                            .observe = observe};

}  // namespace gpuhealth::actions
