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

// The machine as the checks see it. `root` is "" or the top of a made-up tree.
struct Patient {
  std::string root;
  std::function<bool(const std::string& path)> may_use;  // readable and writable for the caller
  std::optional<dbus::ManagerView> manager;              // null when the daemon does not answer
  std::string daemon_problem;                            // why it does not
};

struct Check {
  std::string_view name;
  std::string_view why;
  CheckResult (*run)(const Patient& patient);  // fills state, found, advice
};
std::span<const Check> all_checks();

std::vector<CheckResult> examine(const Patient& patient);

}  // namespace gpuhealth::cli
