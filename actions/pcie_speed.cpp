// SPDX-License-Identifier: Apache-2.0
// The speed of the slot's link, set at the slot's own port and judged by its LNKSTA. Three ways, the first that works:
// the bandwidth controller's cooling device (kernel 6.13, pcie_cooling.c), LNKCTL2 and a retrain through configuration
// space (not under lockdown), amdgpu.pcie_gen_cap for the next boot. pp_dpm_pcie takes writes and does nothing on most
// cards, so it is none of them.
#include <algorithm>
#include <cstdio>

#include "actions/actuator.hpp"
#include "actions/pci_config.hpp"

namespace gpuhealth::actions {
namespace {

constexpr unsigned kHighest = 6;
constexpr std::string_view kModuleFile = "/etc/modprobe.d/gpuhealth-pcie.conf";

std::string name(unsigned generation) {
  return "Gen" + std::to_string(generation);
}

struct Slot {
  std::string port;    // "/sys/devices/…/0000:00:01.1"
  std::string config;  // its configuration space
  LinkNow link;
  unsigned now = 0;  // the highest speed that is allowed now: idle links are slower, and that is not ours
};

Result<Slot> look(const Machine& machine, const Target& target) {
  if (target.slot.empty())
    return fail(ErrorCode::NotFound, "the port that " + target.pci + " is plugged into is not shown (an APU, or a VM)");
  Slot out;
  out.port = target.slot;
  out.config = out.port + "/config";
  const auto link = read_link(machine, out.config);
  if (!link) return tl::unexpected<Error>(link.error());
  out.link = *link;
  const auto card = read_link(machine, target.card_end + "/config");
  out.now = out.link.highest;
  if (card && card->highest > 0) out.now = std::min(out.now, card->highest);
  if (out.link.target > 0) out.now = std::min(out.now, out.link.target);
  return out;
}

Result<unsigned> wish(const Asked& asked, const Slot& slot) {
  const double floor = asked.params.number("floor").value_or(3);
  const double wanted = asked.params.number("generation").value_or(static_cast<double>(slot.now) - 1);
  for (const double value : {floor, wanted})
    if (value != static_cast<double>(static_cast<int>(value)) || value < 0 || value > kHighest)
      return fail(ErrorCode::InvalidInput, "pcie-speed: a generation is a whole number from 1 to 6");
  if (wanted < 1 || wanted < floor)
    return fail(ErrorCode::InvalidInput, name(static_cast<unsigned>(wanted)) + " is below the floor of " +
                                             name(static_cast<unsigned>(floor)) +
                                             ": lowering the link further would not be a remedy; the next step is "
                                             "another slot, cable or power supply");
  return static_cast<unsigned>(wanted);
}

std::string cooling_device(const Machine& machine, const std::string& port) {
  const std::string wanted = "PCIe_Port_Link_Speed_" + port.substr(port.rfind('/') + 1);
  for (const std::string& device : machine.hardware.list("/sys/class/thermal")) {
    if (!device.starts_with("cooling_device")) continue;
    std::string folder = "/sys/class/thermal/" + device;
    if (value_of(machine, folder + "/type") == wanted) return folder;
  }
  return {};
}

bool plan_cooling(const Machine& machine, const Slot& slot, unsigned wanted, LedgerEntry& entry) {
  const std::string device = cooling_device(machine, slot.port);
  if (device.empty()) return false;
  const auto most = number_of(value_of(machine, device + "/max_state"));
  if (!most) return false;
  // State 0 is the port's highest speed, each further one a generation less. What cur_state says is the speed of the
  // moment, which is low when the GPU is idle; the prior state is what the target speed says.
  const unsigned allowed = slot.link.target == 0 ? slot.link.highest : slot.link.target;
  if (wanted > slot.link.highest || allowed > slot.link.highest || slot.link.highest - wanted > *most) return false;
  entry.steps = {{"cooling", device + "/cur_state", 0, 0, std::to_string(slot.link.highest - wanted)}};
  entry.back = {{"cooling", device + "/cur_state", 0, 0, std::to_string(slot.link.highest - allowed)}};
  entry.facts["way"] = "cooling-device";
  return true;
}

Result<bool> plan_config(const Machine& machine, const Slot& slot, unsigned wanted, LedgerEntry& entry) {
  const std::string locked = lockdown(machine);
  if (!locked.empty() && locked != "none") {
    entry.warnings.push_back("the kernel is locked down (" + locked +
                             (secure_boot(machine) ? ", secure boot is on" : "") +
                             "): configuration space cannot be written, so it is done at the next boot");
    return false;
  }
  if (slot.link.target == 0) {
    entry.warnings.emplace_back("the slot's port has no register for a target speed, so it is done at the next boot");
    return false;
  }
  const auto express = find_express(machine, slot.config);
  if (!express) return tl::unexpected<Error>(express.error());
  const LedgerStep train = {"retrain", slot.config, *express, 0, {}};
  const auto bits = [&](unsigned generation) {
    return LedgerStep{"bits", slot.config, *express + kLinkControl2, kTargetSpeed, std::to_string(generation)};
  };
  entry.steps = {bits(wanted), train};
  entry.back = {bits(slot.link.target), train};
  entry.facts["way"] = "config-space";
  return true;
}

// Upper half: the platform, lower half: the card; a bit a generation (amd_pcie.h).
std::string module_option(unsigned generation) {
  const unsigned mask = (1U << std::min(generation, 5U)) - 1;
  char buffer[96];
  (void)std::snprintf(buffer, sizeof buffer, "# written by gpuhealthd\noptions amdgpu pcie_gen_cap=0x%04x%04x\n", mask,
                      mask);
  return buffer;
}

// The generation that our file holds the driver to; 0: it is not there, or not as we write it.
unsigned held_to(const FileState& file) {
  for (unsigned generation = 1; file.exists && generation < kHighest; ++generation)
    if (file.bytes == module_option(generation)) return generation;
  return 0;
}

// Why nothing has to be written; empty: it has.
Result<std::string> plan_module(const Machine& machine, unsigned wanted, LedgerEntry& entry) {
  for (const std::string& file : machine.files.list("/etc/modprobe.d")) {
    const std::string path = "/etc/modprobe.d/" + file;
    const auto text = machine.files.read(path, std::size_t{1} << 20);
    if (path != kModuleFile && text && text->find("pcie_gen_cap") != std::string::npos)
      return fail(ErrorCode::Unavailable, path + " sets pcie_gen_cap already: somebody else decides this");
  }
  const auto prior = file_state(machine.files, std::string(kModuleFile));
  if (!prior) return tl::unexpected<Error>(prior.error());
  entry.prior[std::string(kModuleFile)] = *prior;
  if (const unsigned held = held_to(*prior); held > 0) entry.before = name(held) + " by the module's option";
  entry.steps = {{"file", std::string(kModuleFile), 0, 0, module_option(wanted)}};
  entry.lasting = true;
  entry.facts["way"] = "module-option";
  entry.warnings.emplace_back(
      "it holds from the next boot on and for every GPU of this driver; where the initramfs loads amdgpu it has to be "
      "made anew (update-initramfs -u, dracut -f)");
  const unsigned held = held_to(*prior);
  if (held == 0 || held > wanted) return std::string();
  return std::string(kModuleFile) + " holds every GPU of this driver to " + name(held) +
         " already, from the next boot on";
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  if (auto awake = must_be_awake(machine, *asked.target); !awake) return tl::unexpected<Error>(awake.error());
  const auto slot = look(machine, *asked.target);
  if (!slot) return tl::unexpected<Error>(slot.error());
  const auto wanted = wish(asked, *slot);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  Plan out;
  LedgerEntry& entry = out.entry;
  entry.before = name(slot->now);
  entry.wanted = name(*wanted);
  if (*wanted == slot->now) out.already = "the link may not be faster than " + name(slot->now) + " already";
  if (*wanted > slot->now)
    return fail(ErrorCode::InvalidInput, "the link is held to " + name(slot->now) +
                                             "; pcie-speed only lowers it. To raise it revert what lowered it");
  entry.facts = {{"port", slot->port},
                 {"generation", std::to_string(*wanted)},
                 {"width", std::to_string(slot->link.width)},
                 {"card", asked.target->card_end}};
  if (!plan_cooling(machine, *slot, *wanted, entry)) {
    const auto config = plan_config(machine, *slot, *wanted, entry);
    if (!config) return tl::unexpected<Error>(config.error());
    if (!*config) {
      auto why_not = plan_module(machine, *wanted, entry);
      if (!why_not) return tl::unexpected<Error>(why_not.error());
      if (out.already.empty()) out.already = std::move(*why_not);
    }
  }
  return out;
}

std::string fact(const LedgerEntry& entry, const char* key) {
  const auto found = entry.facts.find(key);
  return found == entry.facts.end() ? std::string() : found->second;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const std::string way = fact(entry, "way");
  const std::string port = fact(entry, "port");
  if (way == "module-option") {
    const auto now = file_state(machine.files, std::string(kModuleFile));
    if (!now) return tl::unexpected<Error>(now.error());
    if (now->exists && now->bytes == entry.steps.front().value) return entry.wanted;
    const auto prior = entry.prior.find(std::string(kModuleFile));
    if (prior != entry.prior.end() && *now == prior->second) return entry.before;
    return std::string(now->exists ? "what somebody else wrote there" : "no option of the module");
  }
  const auto link = read_link(machine, port + "/config");
  if (!link) return tl::unexpected<Error>(link.error());
  unsigned allowed = link->target == 0 ? link->highest : std::min(link->target, link->highest);
  // What the card can do at most is a limit as well.
  const auto card = read_link(machine, fact(entry, "card") + "/config");
  if (card && card->highest > 0) allowed = std::min(allowed, card->highest);
  return name(allowed);
}

// Judged where it counts: the link must be up, no faster than wanted and as wide as before, and the card must answer.
Result<void> verify(const Machine& machine, const LedgerEntry& entry) {
  if (fact(entry, "way") == "module-option") return {};
  const auto link = read_link(machine, fact(entry, "port") + "/config");
  if (!link) return tl::unexpected<Error>(link.error());
  const auto generation = number_of(fact(entry, "generation")).value_or(0);
  if (link->generation == 0 || link->width == 0)
    return fail(ErrorCode::Unavailable, "the link at " + fact(entry, "port") + " did not come up again");
  if (link->generation > generation)
    return fail(ErrorCode::Unavailable, "LNKSTA at " + fact(entry, "port") + " still says " + name(link->generation) +
                                            ": it was accepted and has no effect");
  const auto card = read_config(machine, fact(entry, "card") + "/config", 0);
  if (!card) return tl::unexpected<Error>(card.error());
  const auto width = number_of(fact(entry, "width")).value_or(0);
  if (link->width < width)
    return fail(ErrorCode::Unavailable,
                "the link lost lanes: x" + std::to_string(link->width) + " of x" + std::to_string(width));
  return {};
}

}  // namespace

const Actuator kPcieSpeed = {.kind = ActionKind::PcieSpeed,
                             .on_device = true,
                             .needs_idle = true,
                             .plan = plan,
                             .observe = observe,
                             .verify = verify};

}  // namespace gpuhealth::actions
