// SPDX-License-Identifier: Apache-2.0
// What this machine lacks for full function: a table of checks, one function each. Works without daemon.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dbus/client.hpp"

namespace gpuhealth::cli {

enum class CheckState : std::uint8_t { Ok, Missing, Note };
std::string_view to_string(CheckState state);  // "ok", "missing", "note"

struct CheckResult {
  std::string name;
  CheckState state = CheckState::Ok;
  std::string found;   // what was seen
  std::string why;     // why it matters
  std::string advice;  // what to do; empty when there is nothing to do
};

// A device as a runtime sees it; or why the runtime sees none.
struct RuntimeSeen {
  std::string runtime;  // "hip", "opencl", "cuda"
  int ordinal = 0;
  std::string pci;  // empty: it does not say
  std::string name;
  std::string problem;
  bool absent = false;  // not installed, or no device: no trouble
};
// One line of `gpuhealth-canary --devices`; nothing for what is none.
std::optional<RuntimeSeen> parse_runtime_line(std::string_view line);

// The machine as the checks see it. `root` is "" or the top of a made-up tree.
struct Patient {
  std::string root;
  std::function<bool(const std::string& path)> may_use;  // readable and writable for the caller
  std::optional<dbus::ManagerView> manager;              // null when the daemon does not answer
  std::string daemon_problem;                            // why it does not
  std::vector<RuntimeSeen> runtimes;                     // what runtimes said, each asked in a process of its own
  std::vector<unsigned> groups;                          // of the caller
  std::string firmware_missing;                          // the kernel's words, where its log can be read
  std::function<std::optional<std::string>(const std::string& name)> variable;  // of the caller's environment
};

struct Check {
  std::string_view name;
  std::string_view why;
  CheckResult (*run)(const Patient& patient);  // fills state, found, advice
};
std::span<const Check> all_checks();
std::span<const Check> stack_checks();  // those of them about the user's own stack

std::vector<CheckResult> examine(const Patient& patient);

}  // namespace gpuhealth::cli
