// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/traces.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace gpuhealth::klog {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::uint64_t kMostLines = 150;  // of a trace; longer ones are several

// Heads, as kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, arch/*/mm/fault.c and lib/bug.c print them.
struct HeadRow {
  std::string_view start;
  std::string_view part;  // somewhere behind; empty: nothing more
  Type type;
};
constexpr std::array kHeads = std::to_array<HeadRow>({
    {"INFO: task ", " blocked for more than ", Type::KernelHungTask},
    {"watchdog: BUG: soft lockup", "", Type::KernelSoftLockup},
    {"NMI watchdog: BUG: soft lockup", "", Type::KernelSoftLockup},
    {"BUG: soft lockup", "", Type::KernelSoftLockup},
    {"watchdog: Watchdog detected hard LOCKUP", "", Type::KernelHardLockup},
    {"NMI watchdog: Watchdog detected hard LOCKUP", "", Type::KernelHardLockup},
    {"Watchdog detected hard LOCKUP", "", Type::KernelHardLockup},
    {"rcu: INFO: rcu_", "detected ", Type::KernelRcuStall},
    {"INFO: rcu_", "detected ", Type::KernelRcuStall},
    {"BUG: kernel NULL pointer", "", Type::KernelOops},
    {"BUG: unable to handle", "", Type::KernelOops},
    {"Unable to handle kernel", "", Type::KernelOops},
    {"Oops: ", "", Type::KernelOops},
    {"general protection fault", "", Type::KernelOops},
    {"kernel BUG at ", "", Type::KernelOops},
    {"invalid opcode: 0000", "", Type::KernelOops},
    {"WARNING: CPU: ", " at ", Type::KernelWarning},
    {"WARNING: drivers/gpu/drm/", "", Type::KernelWarning},
});

// Paths and functions that are a GPU driver's own.
constexpr std::array<std::string_view, 6> kPaths = {"drivers/gpu/drm/amd/",     "drivers/gpu/drm/radeon/",
                                                    "drivers/gpu/drm/i915/",    "drivers/gpu/drm/xe/",
                                                    "drivers/gpu/drm/nouveau/", "drivers/gpu/drm/scheduler/"};
constexpr std::array<std::string_view, 12> kModules = {"[amdgpu",    "[radeon", "[nouveau", "[nvidia",
                                                       "[i915",      "[xe]",    "[xe ",     "[gpu_sched",
                                                       "[amd-sched", "[amdttm", "amdgpu_",  "drm_sched_"};

bool has_any(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != npos; });
}

std::optional<Type> head_type(std::string_view text) {
  for (const auto& row : kHeads)
    if (text.starts_with(row.start) && (row.part.empty() || text.find(row.part, row.start.size()) != npos))
      return row.type;
  return std::nullopt;
}

std::uint32_t number_at(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "INFO: task Xorg:1234 blocked", "soft lockup - CPU#3 stuck for 22s! [kworker/3:1:123]".
void name_task(Event& event, std::string_view text) {
  std::string_view task;
  if (event.type == Type::KernelHungTask) {
    task = text.substr(11, text.find(" blocked for") - 11);
  } else if (event.type == Type::KernelSoftLockup) {
    const auto open = text.find('[');
    const auto close = text.find(']', open);
    if (open == npos || close == npos) return;
    task = text.substr(open + 1, close - open - 1);
  } else {
    return;
  }
  const auto colon = task.rfind(':');
  if (colon == npos) return;
  event.process = task.substr(0, colon);
  event.pid = number_at(task.substr(colon + 1));
}

// A frame "? amdgpu_foo+0x1f/0x30 [amdgpu]", "RIP: 0010:…" or "Workqueue: …"; not the list of loaded modules.
bool shows_driver(std::string_view text) {
  if (text.find("Modules linked in") != npos) return false;
  if (text.find("+0x") == npos && text.find("Workqueue:") == npos) return false;
  return has_any(text, kModules);
}

}  // namespace

Traces::Found Traces::head(Event event, std::string_view text, const Folding::Place& place) {
  const auto type = head_type(text);
  if (!type) return std::nullopt;
  // The lines of one crash: "BUG: …", "Oops: …".
  if (trace_ && *type == Type::KernelOops && trace_->event.type == Type::KernelOops &&
      place.line - trace_->place.line < 12)
    return std::nullopt;
  event.type = *type;
  event.severity = info(*type).severity;
  name_task(event, text);
  trace_ = Trace{std::move(event), place};
  return has_any(text, kPaths) || shows_driver(text) ? frame("Workqueue: amdgpu_", place) : std::nullopt;
}

Traces::Found Traces::frame(std::string_view text, const Folding::Place& place) {
  if (!shows_driver(text)) return std::nullopt;
  if (oom_ && place.line - oom_->place.line < kMostLines) oom_in_driver_ = true;
  if (!trace_) return std::nullopt;
  const bool belongs = place.line - trace_->place.line < kMostLines;
  Found out;
  if (belongs) out.emplace(std::move(trace_->event), trace_->place);
  trace_.reset();
  return out;
}

Traces::Found Traces::out_of_memory(Event event, std::string_view text, const Facts& facts, const Folding::Place& place,
                                    bool& echo) {
  event.type = Type::OomKill;
  event.severity = info(Type::OomKill).severity;
  if (text.find("invoked oom-killer") != npos) {
    oom_ = Trace{std::move(event), place};
    oom_in_driver_ = false;
    return std::nullopt;
  }
  if (const auto task = text.find("task="); text.find("oom-kill:") != npos && task != npos) {
    const auto name = text.substr(task + 5);
    event.process = name.substr(0, name.find(','));
    const auto pid = text.find("pid=", task);
    if (pid != npos) event.pid = number_at(text.substr(pid + 4));
    echo = true;
  } else {
    const auto process = text.find(" process ");
    const auto open = text.find('(', process == npos ? 0 : process);
    const auto close = text.find(')', open == npos ? 0 : open);
    if (process == npos || open == npos || close == npos) return std::nullopt;
    event.pid = number_at(text.substr(process + 9));
    event.process = text.substr(open + 1, close - open - 1);
    echo = false;
  }
  const bool in_driver = oom_in_driver_ && oom_ && place.line - oom_->place.line < 4 * kMostLines;
  if (!in_driver && !facts.uses_gpu(event.process, event.pid)) return std::nullopt;
  event.subject = std::to_string(event.pid);
  return Found(std::in_place, std::move(event), place);
}

}  // namespace gpuhealth::klog
