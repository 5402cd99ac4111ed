// SPDX-License-Identifier: Apache-2.0
#include "daemon/act_unit.hpp"

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "actions/request.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr const char* kRun = "/usr/bin/systemd-run";
constexpr const char* kControl = "/usr/bin/systemctl";

constexpr auto kProperties = std::to_array<const char*>({
    "Type=exec",
    "WorkingDirectory=/",
    "UMask=0022",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "RestrictRealtime=yes",
    "LockPersonality=yes",
    "KeyringMode=private",
    "SystemCallArchitectures=native",
    "LimitCORE=0",
    "TasksMax=256",
    // A refusal is an answer, and no failure of the unit.
    "SuccessExitStatus=1 2 3 4 5 6 7 8 9",
    "LogLevelMax=notice",
    "KillMode=control-group",
    "SendSIGKILL=yes",
    "TimeoutStopSec=5",
});
// Hardware's unit cannot touch programs or /boot.
constexpr auto kHardware = std::to_array<const char*>({"ProtectSystem=yes", "RestrictNamespaces=yes"});

}  // namespace

ActRoom room_of(const std::vector<std::string>& words, const std::string& input) {
  const auto is_kernel = [](const std::string& word) {
    return word == "kernel" || word.find("kernel-") != std::string::npos;
  };
  if (std::ranges::any_of(words, is_kernel)) return ActRoom::Boot;
  const auto order = input.empty() ? tl::unexpected(Error{}) : actions::order_from(input);
  if (!order) return ActRoom::Hardware;
  switch (order->request.kind) {
    case ActionKind::KernelPin:
    case ActionKind::KernelTrial:
    case ActionKind::KernelHold:
      return ActRoom::Boot;
    case ActionKind::RunHook:
      return ActRoom::Hook;
    default:
      return ActRoom::Hardware;
  }
}

ActUnit act_unit(const std::string& name, const std::string& program, const std::vector<std::string>& arguments,
                 ActRoom room, double limit_s) {
  ActUnit out;
  auto& words = out.start;
  words = {kRun, "--quiet", "--collect", "--wait", "--pipe", "--unit=" + name, "--description=GPU action"};
  const auto property = [&](const std::string& text) { words.push_back("--property=" + text); };
  for (const char* text : kProperties) property(text);
  if (room == ActRoom::Hardware)
    for (const char* text : kHardware) property(text);
  property("RuntimeMaxSec=" + std::to_string(std::lround(limit_s)));
  words.emplace_back("--");
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  out.stop = {kControl, "--no-block", "--quiet", "stop", name};
  return out;
}

std::string why_no_units() {
  const char* started = std::getenv("SYSTEMD_EXEC_PID");
  if (sd_booted() <= 0 || started == nullptr || std::atol(started) != static_cast<long>(getpid()))
    return "the daemon was not started by systemd";
  if (geteuid() != 0) return "the daemon is not root";
  if (access(kRun, X_OK) != 0 || access(kControl, X_OK) != 0) return "systemd-run is not installed";
  return {};
}

// The daemon has more than one runner, systemd one room of names.
std::string next_unit_name() {
  static unsigned runs = 0;
  return "gpuhealth-act-" + std::to_string(getpid()) + "-" + std::to_string(++runs) + ".service";
}

}  // namespace gpuhealth::daemon
