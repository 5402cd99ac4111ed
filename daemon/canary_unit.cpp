// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_unit.hpp"

#include <grp.h>
#include <pwd.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace gpuhealth::daemon {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCache = "/var/cache/gpuhealth-canary";
constexpr const char* kRun = "/usr/bin/systemd-run";
constexpr const char* kControl = "/usr/bin/systemctl";

// What every worker's unit is. No MemoryDenyWriteExecute=: runtimes compile.
constexpr auto kProperties = std::to_array<const char*>({
    "Type=exec",
    "CacheDirectory=gpuhealth-canary",
    "CacheDirectoryMode=0750",
    "WorkingDirectory=/",
    "UMask=0077",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "DevicePolicy=closed",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateNetwork=yes",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "RestrictAddressFamilies=AF_UNIX AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "KeyringMode=private",
    "SystemCallArchitectures=native",
    "LimitCORE=0",
    "TasksMax=1024",
    "CPUWeight=20",
    "OOMScoreAdjust=800",
    // What it found is in its lines, and no failure of the unit; a start every few minutes is no news.
    "SuccessExitStatus=1 4 7",
    "LogLevelMax=notice",
    "KillMode=control-group",
    "SendSIGKILL=yes",
    "TimeoutStopSec=5",
});

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Of the groups that may open device nodes, those that this machine has.
std::string node_groups() {
  std::string out;
  for (const char* name : {"render", "video"}) {
    if (getgrnam(name) != nullptr) out += (out.empty() ? "" : " ") + std::string(name);
  }
  return out;
}

// /proc/driver/nvidia/gpus/0000:03:00.0/information: "Device Minor: 	 0".
std::string nvidia_minor(const fs::path& root, const std::string& device) {
  std::ifstream in(root / "proc/driver/nvidia/gpus" / device / "information");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Device Minor:")) return line.substr(line.find_last_of(" \t") + 1);
  }
  return {};
}

}  // namespace

CanaryUnit canary_unit(const std::string& owner, const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& device, const std::vector<std::string>& nodes, double limit_s) {
  CanaryUnit out;
  out.name = std::string(kCanaryUser) + "-" + device + ".service";
  auto& words = out.start;
  words = {kRun, "--quiet", "--collect", "--wait", "--pipe", "--unit=" + out.name, "--uid=" + std::string(kCanaryUser)};
  const auto property = [&](const std::string& text) { words.push_back("--property=" + text); };
  words.push_back("--description=GPU canary on " + device);
  words.push_back(std::string("--setenv=HOME=") + kCache);
  words.push_back(std::string("--setenv=XDG_CACHE_HOME=") + kCache);
  // With the daemon it goes; a daemon that was killed leaves none behind.
  property("BindsTo=" + owner);
  property("After=" + owner);
  for (const char* text : kProperties) property(text);
  if (const auto groups = node_groups(); !groups.empty()) property("SupplementaryGroups=" + groups);
  for (const auto& node : nodes) property("DeviceAllow=" + node + " rw");
  property("RuntimeMaxSec=" + std::to_string(std::lround(limit_s)));
  words.emplace_back("--");
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  out.stop = {kControl, "--no-block", "--quiet", "stop", out.name};
  return out;
}

std::vector<std::string> device_nodes(const std::string& root, const std::string& device) {
  std::vector<std::string> out;
  const fs::path base = root.empty() ? "/" : root;
  const auto function = base / "sys/bus/pci/devices" / device;
  std::error_code error;
  for (fs::directory_iterator it(function / "drm", error), end; !error && it != end; it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.starts_with("renderD")) out.push_back("/dev/dri/" + name);
  }
  const auto vendor = first_line(function / "vendor");
  if (vendor == "0x1002") out.emplace_back("/dev/kfd");
  if (vendor == "0x10de") {
    if (const auto number = nvidia_minor(base, device); !number.empty()) out.push_back("/dev/nvidia" + number);
    for (const char* node : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) out.emplace_back(node);
  }
  std::ranges::sort(out);
  return out;
}

Result<std::string> owner_of_canary_units() {
  const auto cannot = [](const char* why) { return fail(ErrorCode::Unavailable, why); };
  const char* started = std::getenv("SYSTEMD_EXEC_PID");
  if (sd_booted() <= 0 || started == nullptr || std::atol(started) != static_cast<long>(getpid()))
    return cannot("the daemon was not started by systemd");
  if (geteuid() != 0) return cannot("the daemon is not root");
  if (access(kRun, X_OK) != 0 || access(kControl, X_OK) != 0) return cannot("systemd-run is not installed");
  if (getpwnam(kCanaryUser) == nullptr) return cannot("there is no user gpuhealth-canary (systemd-sysusers makes it)");
  char* unit = nullptr;
  if (sd_pid_get_unit(0, &unit) < 0) return cannot("the daemon's unit is not known");
  const std::unique_ptr<char, decltype(&std::free)> name(unit, &std::free);
  return std::string(name.get());
}

}  // namespace gpuhealth::daemon
