// SPDX-License-Identifier: Apache-2.0
// The machine that is acted on: its files, its hardware, and all else that is outside, injected, so that tests need
// neither root nor a GPU.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/system.hpp"
#include "core/tree.hpp"

namespace gpuhealth::grub {
struct Surroundings;
}

namespace gpuhealth::actions {

struct ProgramRun {
  std::vector<std::string> words;  // words[0]: a path
  std::string input;
  std::vector<std::string> variables;  // "NAME=VALUE"
  std::chrono::milliseconds deadline{30'000};
  std::size_t most = 65'536;  // of what it says; the rest is dropped
};
struct ProgramEnd {
  int code = -1;  // 128 + signal when one killed it
  bool late = false;
  std::string said;  // standard output and error
};
// No shell. It gets a process group of its own; at its deadline the group is killed.
Result<ProgramEnd> run_program(const ProgramRun& run);

struct RebootWish {
  std::chrono::seconds notice{0};
  std::string message;
};

struct Outside {
  System* system = nullptr;
  std::function<Result<ProgramEnd>(const ProgramRun&)> run;
  std::function<Result<std::vector<std::string>>()> inhibitors;  // who keeps the machine from going down, and why
  std::function<Result<void>(const RebootWish&)> reboot;
  std::function<Result<void>(int priority, const std::string& text,
                             const std::vector<std::pair<std::string, std::string>>& fields)>
      journal;
  std::function<void(std::chrono::milliseconds)> pause;
  std::function<grub::Surroundings()> kernel;  // for the boot loader's part
  WallTime now;
  std::string boot_id;
  std::string host;
  int utc_offset_s = 0;  // of local time
};
// `hardware` is where /proc is read.
Outside real_outside(System& system, const Tree& hardware);

struct Machine {
  Tree files;     // /etc, /var, /run, programs
  Tree hardware;  // /sys, /proc
  Outside outside;
};

// The GPU that an action is for.
struct Target {
  DeviceInfo info;
  std::string id;
  std::string pci;       // "0000:03:00.0"
  std::string dir;       // "/sys/bus/pci/devices/0000:03:00.0"
  std::string hwmon;     // empty: none
  std::string slot;      // folder of the slot's port; empty: the tree does not show it
  std::string card_end;  // folder of the card's outermost port: a switch on the card, or the GPU
};
// By id or by PCI address.
Result<Target> find_target(const Machine& machine, const std::string& device);
// Refuses what sleeps: every access of the driver's files would wake it, and it is healthy.
Result<void> must_be_awake(const Machine& machine, const Target& target);

// The first line of a file of the hardware, trimmed; empty where it is absent or cannot be read.
std::string value_of(const Machine& machine, const std::string& path);
// The same, with the errno where it cannot be read.
Result<std::string> read_value(const Machine& machine, const std::string& path);
std::optional<std::int64_t> number_of(std::string_view text);  // a decimal number and nothing else

// /usr/bin/NAME and so on, below the tree of files; empty where it is not installed.
std::string find_program(const Machine& machine, std::string_view name);

// The folders as the rooms before this one take them: "" for the running machine.
std::string sysroot_of(const Tree& tree);

}  // namespace gpuhealth::actions
