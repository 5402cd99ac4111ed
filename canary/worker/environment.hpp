// SPDX-License-Identifier: Apache-2.0
// What surrounds a run: the environment, which is cleaned of the work-arounds that would hide the fault; the software,
// which is the epoch; the card's state.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gpuhealth::canary {

// Known work-arounds that are set, here or for all users (/etc/environment and its like): name -> value.
std::map<std::string, std::string> workarounds(const std::string& root = "");
// Keeps what a runtime needs to be found and to keep its cache; drops all else.
void clean_environment();

// Kernel, driver, firmware, VBIOS, module parameters; not the runtime. `pci` empty: no device.
std::map<std::string, std::string> software_of(const std::string& root, const std::string& pci);

// Clocks in MHz, temperatures in C, power in W, link, memory in use: what sysfs says now. A sleeping GPU is not asked.
std::map<std::string, std::string> card_state(const std::string& root, const std::string& pci);
// The narrowest link between card and root, GB/s one way; 0: unknown.
double link_gb_s(const std::string& root, const std::string& pci);
// True where the GPU sleeps: asking it would wake it.
bool asleep(const std::string& root, const std::string& pci);
bool on_battery(const std::string& root);

}  // namespace gpuhealth::canary
