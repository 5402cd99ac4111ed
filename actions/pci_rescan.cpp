// SPDX-License-Identifier: Apache-2.0
// All of the card goes: at the switch on the card where it has one, else function by function (the sound device too).
// Then the slot is looked at again. A card that is gone already only needs the second half.
#include "actions/actuator.hpp"
#include "actions/pci_config.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::chrono::milliseconds kLookPause{100};
constexpr int kLooks = 100;

std::string devices(const std::string& pci) {
  return "/sys/bus/pci/devices/" + pci;
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  Plan out;
  LedgerEntry& entry = out.entry;
  entry.before = "as it is";
  entry.wanted = "found again";
  std::string rescan = "/sys/bus/pci/rescan";
  if (asked.target) {
    const Target& target = *asked.target;
    const std::string outermost = target.card_end.substr(target.card_end.rfind('/') + 1);
    if (outermost != target.pci) {
      entry.steps.push_back(value_step(target.card_end + "/remove", "1"));
    } else {
      const std::string slot = target.pci.substr(0, target.pci.rfind('.') + 1);
      for (const std::string& name : machine.hardware.list("/sys/bus/pci/devices"))
        if (name.starts_with(slot)) entry.steps.push_back(value_step(devices(name) + "/remove", "1"));
    }
    if (!target.slot.empty() && machine.hardware.is_file(target.slot + "/rescan")) rescan = target.slot + "/rescan";
    entry.facts["driver"] = target.info.driver;
    entry.facts["vendor"] = value_of(machine, target.dir + "/vendor");
    entry.facts["device"] = value_of(machine, target.dir + "/device");
  }
  entry.steps.push_back(value_step(rescan, "1"));
  return out;
}

std::string fact(const LedgerEntry& entry, const char* key) {
  const auto found = entry.facts.find(key);
  return found == entry.facts.end() ? std::string() : found->second;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const std::string dir = devices(entry.target);
  for (int look = 0; look < kLooks; ++look) {
    const bool there = machine.hardware.is_folder(dir);
    const std::string driver = fact(entry, "driver");
    if (there && (driver.empty() || machine.hardware.stat(dir + "/driver"))) {
      const auto id = read_config(machine, dir + "/config", 0);
      if (!id) return tl::unexpected<Error>(id.error());
      if (!fact(entry, "device").empty() && value_of(machine, dir + "/device") != fact(entry, "device"))
        return fail(ErrorCode::Unavailable, "another device came back at " + entry.target);
      return entry.wanted;
    }
    machine.outside.pause(kLookPause);
  }
  return fail(ErrorCode::NotFound, entry.target + (machine.hardware.is_folder(dir)
                                                       ? " came back, and its driver did not take it"
                                                       : " did not come back: power off and on, or another slot"));
}

}  // namespace

const Actuator kPciRescan = {.kind = ActionKind::PciRescan,
                             .on_device = true,
                             .recovery = Recovery::Forward,
                             .needs_idle = true,
                             .needs_dark = true,
                             .plan = plan,
                             .observe = observe};

}  // namespace gpuhealth::actions
