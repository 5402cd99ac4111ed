// SPDX-License-Identifier: Apache-2.0
// When which canary runs. Pure: the daemon tells it what it knows, and asks what to start now.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::canary {

struct ScheduleSettings {
  double fast_every_s = 300;   // tiers 0 and 1
  double deep_every_s = 3600;  // tier 2, when idle
  double jitter = 0.1;         // of a period, either way
  int most_tier = 2;           // that runs by itself; 0: userptr_cow alone
  int runs_after_boot = 6;     // before jobs are admitted: as many as an epoch needs to be judged
  double after_boot_every_s = 15;
  int skips_at_most = 6;  // a run that cannot be is caught up; after so many it is said
};

// What keeps a device from being measured now.
struct DeviceSituation {
  std::string device;
  int socket = 0;  // NUMA node: one canary at a time on each
  bool asleep = false;
  bool on_battery = false;
  bool in_a_guest = false;       // bound to vfio
  bool stuck = false;            // a child hangs in the kernel
  bool busy = false;             // somebody computes on it
  bool little_memory = false;    // free video memory below twice the need
  bool amdgpu = true;            // has userptr_cow
  bool stall_confirmed = false;  // the probe costs a spinning core each time
};

struct Start {
  std::string device;
  int tier = 1;                   // 0: userptr_cow alone
  std::vector<std::string> only;  // asked for by a finding
};

class Scheduler {
 public:
  explicit Scheduler(ScheduleSettings settings, std::uint64_t seed) : settings_(settings), random_(seed | 1U) {}

  // What to start at `now_s` (steady). Nothing of what it returns may be running.
  std::vector<Start> due(double now_s, const std::vector<DeviceSituation>& devices);
  // A person wants the GPU now: marks it as running, unless a canary runs on it or on another of its socket.
  bool claim(const DeviceSituation& d);
  void started(std::string_view device, double now_s);
  void finished(std::string_view device, double now_s);
  // A finding wants to look again.
  void want(std::string_view device, const std::string& canary, double at_s);
  void ask_now(std::string_view device, int tier);  // by a person
  void forget(std::string_view device);

  // Why a device has not been measured for so long, for people; empty while it is on time.
  [[nodiscard]] std::string overdue(std::string_view device) const;
  [[nodiscard]] bool qualified(std::string_view device) const;  // the runs after boot are done

 private:
  struct Plan {
    double next_fast_s = 0, next_deep_s = 0, next_probe_s = 0;
    int boot_runs = 0;
    int skipped = 0;
    std::string why;
    bool running = false;
    int socket = 0;
    std::optional<int> asked;
    std::map<std::string, double> wanted;  // canary -> when
  };
  double jittered(double period_s);
  std::optional<Start> due(Plan& plan, double now_s, const DeviceSituation& d);
  ScheduleSettings settings_;
  std::uint64_t random_;
  std::map<std::string, Plan, std::less<>> plans_;
};

// Why nothing at all may run on it; empty when it may.
std::string_view hindrance(const DeviceSituation& device);

}  // namespace gpuhealth::canary
