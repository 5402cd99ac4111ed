// SPDX-License-Identifier: Apache-2.0
// How one kind of boot loader is told which kernel to start. A selector only says what has to change; operations.cpp
// does it. One file each: selector_grub.cpp, selector_grub_bls.cpp, selector_systemd_boot.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grub/kernels.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::grub {

// Ids that begin with a letter: GRUB takes one that begins with a digit for a number.
inline constexpr std::string_view kPinnedId = "gpuhealth-pinned";
inline constexpr std::string_view kTrialId = "gpuhealth-trial";
// A key of grubenv: "armed" when a trial is asked for, "started" once GRUB has started its entry.
inline constexpr const char* kTrialMark = "gpuhealth_trial";
inline constexpr const char* kTrialStarted = "started";

// What is wanted after the change. Both empty: the distribution's own choice, nothing of ours left.
struct Wish {
  std::string pinned;  // starts by itself, and is where every failure of the loader leads
  std::string trial;   // starts once, at the next boot
};

struct Change {
  std::map<std::string, FileState> files;  // as they shall be
  bool new_menu = false;                   // made by the distribution's tool, afterwards
  std::vector<std::string> tool;           // which writes the menu to the path that is appended
  // Keys of grubenv, last of all: a one-shot is armed only when the menu has its entry.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  std::vector<std::string> one_shot;  // a tool that arms it, where that is no file
  std::vector<std::string> steps;     // the same in words
};

struct Selector {
  std::string_view name;
  Result<Change> (*plan)(const Inventory& inventory, const Tree& tree, const Wish& wish);
  // After it was done: does the menu say what was wanted?
  Result<void> (*check)(const Boot& boot, const Tree& tree, const Wish& wish);
};
// Null where nothing may be steered.
const Selector* selector_for(Loader loader);
extern const Selector kGrubSelector;
extern const Selector kGrubBlsSelector;
extern const Selector kSystemdBootSelector;

// Shared by both kinds of GRUB.
inline constexpr std::string_view kMenuScript = "/etc/grub.d/06_gpuhealth";
inline constexpr std::string_view kDropIn = "/etc/default/grub.d/zz-gpuhealth.cfg";
inline constexpr std::string_view kAptFile = "/etc/apt/apt.conf.d/52gpuhealth-kernel";
Result<Change> plan_grub(const Inventory& inventory, const Tree& tree, const Wish& wish,
                         const std::map<std::string, std::string>& bodies);
Result<void> check_grub(const Boot& boot, const Tree& tree, const Wish& wish);
// apt keeps the kernels in the list from automatic removal; empty list: no file.
FileState apt_protection(const std::vector<std::string>& releases);

}  // namespace gpuhealth::grub
