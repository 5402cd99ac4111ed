// SPDX-License-Identifier: Apache-2.0
#include "canary/gate.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "core/fd.hpp"
#include "telemetry/fdinfo.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/quirks.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::uint64_t kLeastUseNs = 100'000;
constexpr int kMostToManage = 8;
constexpr std::size_t kMostMaps = std::size_t{4} << 20U;
constexpr double kForeignShare = 0.3;
constexpr double kWaited = 0.1;
constexpr ino_t kHostPidNamespace = 4026531836;  // PROC_PID_INIT_INO

std::string read_file(const std::string& path, std::size_t most = 65536) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text(most, '\0');
  std::size_t done = 0;
  while (done < most) {
    const ssize_t n = read(file.get(), text.data() + done, most - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// Calls `each` with every name in a folder; false when it cannot be opened.
template <class Each>
bool for_each_name(const std::string& folder, Each each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return false;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] != '.') each(std::string(entry->d_name));
  }
  return true;
}

std::optional<int> pid_of(const std::string& name) {
  const auto value = number(name);
  if (!value || name.find_first_not_of("0123456789") != std::string::npos || *value > 1U << 30U) return std::nullopt;
  return static_cast<int>(*value);
}

void look_at_file(const std::string& process, const std::string& fd, const std::string& pci, bool sound, Process& out,
                  std::map<std::string, int>& nvidia) {
  std::array<char, 256> target{};
  const ssize_t n = readlink((process + "/fd/" + fd).c_str(), target.data(), target.size() - 1);
  if (n <= 0) return;
  const std::string_view path(target.data(), static_cast<std::size_t>(n));
  if (is_nvidia_node(path)) ++nvidia[std::string(path)];
  if (!path.starts_with("/dev/dri/") || !sound) return;
  const auto client = telemetry::parse_drm_fdinfo(read_file(process + "/fdinfo/" + fd));
  if (client.driver.empty() || (!pci.empty() && client.pci != pci)) return;
  // Descriptors that were passed on or duplicated show the same client.
  for (const auto& [engine, ns] : client.engine_ns) out.engine_ns["client " + client.client_id + " " + engine] = ns;
}

void read_cpu(const std::string& root, GateLook& look) {
  // "cpu  user nice system idle iowait irq softirq steal …": stolen time is somebody else's as well.
  const auto text = read_file(root + "/proc/stat", 512);
  unsigned long long v[8] = {};
  if (std::sscanf(text.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
                  &v[6], &v[7]) < 4)
    return;
  for (const auto ticks : v) look.cpu_all += ticks;
  look.cpu_busy = look.cpu_all - v[3] - v[4];
}

std::string milliseconds(std::uint64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f ms", static_cast<double>(ns) / 1e6);
  return text.data();
}

}  // namespace

bool is_nvidia_node(std::string_view path) {
  return path.starts_with("/dev/nvidia") && path.size() > 11 && path[11] >= '0' && path[11] <= '9';
}

bool only_manages(const std::string& process, int opened) {
  return opened <= kMostToManage &&
         read_file(process + "/maps", kMostMaps).find("libnvidia-ml.so") != std::string::npos;
}

GateVerdict compare_looks(const GateLook& before, const GateLook& after, const std::set<int>& own) {
  GateVerdict out;
  out.gate = before.everybody && after.everybody ? Gate::Strong : Gate::Weak;
  const auto say = [&](const Process& p, const std::string& what) {
    if (out.busy) return;
    out.busy = true;
    out.reason = "pid " + std::to_string(p.pid) + (p.name.empty() ? "" : " (" + p.name + ")") + " " + what;
  };
  for (const auto* look : {&before, &after}) {
    for (const auto& p : look->processes) {
      if (own.contains(p.pid)) continue;
      if (p.kfd) say(p, "has compute queues");
      if (p.nvidia) say(p, "has the GPU open");
    }
  }
  for (const auto& p : after.processes) {
    if (own.contains(p.pid)) continue;
    const auto then = std::ranges::find(before.processes, p.pid, &Process::pid);
    for (const auto& [engine, ns] : p.engine_ns) {
      std::uint64_t earlier = 0;
      if (then != before.processes.end()) {
        if (const auto it = then->engine_ns.find(engine); it != then->engine_ns.end())
          earlier = std::min(it->second, ns);
      }
      if (ns - earlier >= kLeastUseNs)
        say(p, "used " + engine.substr(engine.rfind(' ') + 1) + " for " + milliseconds(ns - earlier));
    }
  }
  return out;
}

GateVerdict compare_cpu(const GateLook& before, const GateLook& after, std::uint64_t own_ticks, double waited) {
  GateVerdict out;
  out.gate = after.cpu_all > before.cpu_all ? Gate::Strong : Gate::Unknown;
  if (out.gate == Gate::Unknown) return out;
  const auto busy = static_cast<double>(after.cpu_busy - std::min(before.cpu_busy, after.cpu_busy));
  const auto all = static_cast<double>(after.cpu_all - before.cpu_all);
  const double foreign = std::max(0.0, busy - static_cast<double>(own_ticks)) / all;
  if (foreign < kForeignShare || waited < kWaited) return out;
  out.busy = true;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "others used %.0f %% of the processors, and the device waited for them",
                foreign * 100);
  out.reason = text.data();
  return out;
}

GateLook look_for_clients(const std::string& root, const std::string& pci) {
  GateLook look;
  read_cpu(root, look);
  struct stat ns{};
  look.everybody =
      geteuid() == 0 && (!root.empty() || (stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == kHostPidNamespace));
  // Where the kernel may crash when this is read, who uses the GPU is known in part.
  const bool sound = !telemetry::quirk_applies(telemetry::QuirkId::FdinfoMayCrash, AsicFamily::Unknown,
                                               telemetry::trimmed(read_file(root + "/proc/sys/kernel/osrelease", 256)));
  if (!sound) look.everybody = false;
  std::set<int> kfd;
  for_each_name(root + "/sys/class/kfd/kfd/proc", [&](const std::string& name) {
    if (const auto pid = pid_of(name)) kfd.insert(*pid);
  });
  const bool listed = for_each_name(root + "/proc", [&](const std::string& name) {
    const auto pid = pid_of(name);
    if (!pid) return;
    const std::string process = root + "/proc/" + name;
    Process p;
    p.pid = *pid;
    p.kfd = kfd.erase(*pid) > 0;
    std::map<std::string, int> nvidia;
    const bool read = for_each_name(process + "/fd",
                                    [&](const std::string& fd) { look_at_file(process, fd, pci, sound, p, nvidia); });
    if (!read && errno == EACCES) look.everybody = false;
    p.nvidia = std::ranges::any_of(nvidia, [&](const auto& node) { return !only_manages(process, node.second); });
    if (p.kfd || p.nvidia || !p.engine_ns.empty()) {
      p.name = telemetry::trimmed(read_file(process + "/comm", 64));
      look.processes.push_back(std::move(p));
    }
  });
  if (!listed) look.everybody = false;
  // Compute processes of another process namespace: KFD names them by their host numbers.
  for (const int pid : kfd) look.processes.push_back({pid, "", {}, true, false});
  return look;
}

}  // namespace gpuhealth::canary
