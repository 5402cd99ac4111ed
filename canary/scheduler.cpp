// SPDX-License-Identifier: Apache-2.0
#include "canary/scheduler.hpp"

#include <algorithm>
#include <set>

namespace gpuhealth::canary {
namespace {

constexpr double kProbeBackOff = 12;  // periods, once the stall is known

}  // namespace

std::string_view hindrance(const DeviceSituation& d) {
  if (d.stuck) return "an earlier canary hangs in the kernel";
  if (d.in_a_guest) return "the GPU belongs to a virtual machine";
  if (d.asleep) return "the GPU sleeps";
  if (d.on_battery) return "the machine runs on battery";
  return {};
}

double Scheduler::jittered(double period_s) {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 7U;
  random_ ^= random_ << 17U;
  const double unit = static_cast<double>(random_ >> 11U) / 9007199254740992.0;  // 2^53
  return period_s * (1 + settings_.jitter * (2 * unit - 1));
}

std::optional<Start> Scheduler::due(Plan& plan, double now_s, const DeviceSituation& d) {
  plan.socket = d.socket;
  if (plan.running) return std::nullopt;
  if (const auto why = hindrance(d); !why.empty()) {
    if (now_s >= plan.next_fast_s) {
      plan.why = why;
      ++plan.skipped;
      plan.next_fast_s = now_s + jittered(settings_.fast_every_s);
    }
    return std::nullopt;
  }
  // What needs a runtime stays undone where only the probe may run by itself.
  Start start{d.device, std::min(1, settings_.most_tier), {}};
  if (start.tier == 0) std::erase_if(plan.wanted, [](const auto& one) { return one.first != "userptr_cow"; });
  // The stall's own rule holds on a busy GPU as well.
  for (const auto& [canary, at] : plan.wanted) {
    if (now_s >= at && (canary == "userptr_cow" || canary == "h2d_file_rw" || !d.busy)) start.only.push_back(canary);
  }
  if (!start.only.empty()) {
    for (const auto& canary : start.only) plan.wanted.erase(canary);
    return start;
  }
  if (d.busy || d.little_memory) {
    if (now_s >= plan.next_fast_s) {
      plan.why = d.busy ? "the GPU is in use" : "too little free video memory";
      ++plan.skipped;
      plan.next_fast_s = now_s + jittered(settings_.fast_every_s) / 4;  // caught up as soon as it is free
    }
    const bool asked = plan.asked == 0;  // more than the probe waits until the GPU is free
    if (!d.amdgpu || (!asked && now_s < plan.next_probe_s)) return std::nullopt;
    if (asked) plan.asked.reset();
    plan.next_probe_s = now_s + jittered(settings_.fast_every_s) * (d.stall_confirmed ? kProbeBackOff : 1);
    start.tier = 0;
    return start;
  }
  if (plan.asked) {
    start.tier = *plan.asked;
    plan.asked.reset();
    return start;
  }
  if (settings_.most_tier == 0 && !d.amdgpu) return std::nullopt;
  const bool deep = settings_.most_tier >= 2 && plan.boot_runs >= settings_.runs_after_boot;
  start.tier = std::min(1, settings_.most_tier);
  if (deep && now_s >= plan.next_deep_s) {
    plan.next_deep_s = now_s + jittered(settings_.deep_every_s);
    start.tier = 2;
  } else if (now_s < plan.next_fast_s) {
    return std::nullopt;
  }
  ++plan.boot_runs;
  plan.skipped = 0;
  plan.why.clear();
  const bool booting = plan.boot_runs < settings_.runs_after_boot;
  plan.next_fast_s = now_s + (booting ? settings_.after_boot_every_s : jittered(settings_.fast_every_s));
  if (plan.next_deep_s == 0) plan.next_deep_s = now_s + jittered(settings_.deep_every_s);
  plan.next_probe_s = now_s + jittered(settings_.fast_every_s);
  return start;
}

std::vector<Start> Scheduler::due(double now_s, const std::vector<DeviceSituation>& devices) {
  std::set<int> sockets;
  for (const auto& [name, plan] : plans_) {
    if (plan.running) sockets.insert(plan.socket);
  }
  std::vector<Start> out;
  for (const auto& d : devices) {
    if (sockets.contains(d.socket)) continue;
    auto start = due(plans_[d.device], now_s, d);
    if (!start) continue;
    sockets.insert(d.socket);
    out.push_back(std::move(*start));
  }
  return out;
}

bool Scheduler::claim(const DeviceSituation& d) {
  for (const auto& [name, plan] : plans_) {
    if (plan.running && (name == d.device || plan.socket == d.socket)) return false;
  }
  auto& plan = plans_[d.device];
  plan.socket = d.socket;
  plan.running = true;
  return true;
}

void Scheduler::started(std::string_view device, double /*now_s*/) {
  if (const auto it = plans_.find(device); it != plans_.end()) it->second.running = true;
}

void Scheduler::finished(std::string_view device, double /*now_s*/) {
  if (const auto it = plans_.find(device); it != plans_.end()) it->second.running = false;
}

void Scheduler::want(std::string_view device, const std::string& canary, double at_s) {
  auto& wanted = plans_[std::string(device)].wanted;
  const auto it = wanted.find(canary);
  if (it == wanted.end() || at_s < it->second) wanted[canary] = at_s;
}

void Scheduler::ask_now(std::string_view device, int tier) {
  plans_[std::string(device)].asked = std::clamp(tier, 0, 3);
}

void Scheduler::forget(std::string_view device) {
  if (const auto it = plans_.find(device); it != plans_.end()) plans_.erase(it);
}

std::string Scheduler::overdue(std::string_view device) const {
  const auto it = plans_.find(device);
  if (it == plans_.end() || it->second.skipped < settings_.skips_at_most) return {};
  return it->second.why;
}

bool Scheduler::qualified(std::string_view device) const {
  const auto it = plans_.find(device);
  return it != plans_.end() && it->second.boot_runs >= settings_.runs_after_boot;
}

}  // namespace gpuhealth::canary
