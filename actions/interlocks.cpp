// SPDX-License-Identifier: Apache-2.0
#include "actions/interlocks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "actions/carry_out.hpp"
#include "canary/gate.hpp"
#include "core/json.hpp"

namespace gpuhealth::actions {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kBetweenLooks{250};

struct Latch {
  bool on = false;
  std::string reason, since;
  std::string after;  // entries up to this id no longer count: a person has seen them
};

Latch read_latch(const Tree& files) {
  Latch out;
  const auto text = files.read(kSafeModeFile, std::size_t{1} << 16);
  if (!text) return out;
  const Json json = parse_json<Json>(*text);
  // Damaged: something was written there, and only a person can say that it is over.
  if (!json.is_object()) return {true, "its own note cannot be read", "", ""};
  out.on = json.value("on", Json(true)) == Json(true);
  for (auto [key, field] :
       {std::pair{"reason", &out.reason}, std::pair{"since", &out.since}, std::pair{"after", &out.after}})
    if (json.contains(key) && json[key].is_string()) *field = json[key].get<std::string>();
  return out;
}

Result<void> write_latch(const Machine& machine, const Latch& latch) {
  const Json json = {{"on", latch.on}, {"reason", latch.reason}, {"since", latch.since}, {"after", latch.after}};
  return put_file(machine.files, *machine.outside.system, std::string(kSafeModeFile),
                  {true, json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n", 0640});
}

bool has_word(std::string_view line, std::string_view word) {
  while (!line.empty()) {
    const auto end = std::min(line.find_first_of(" \t\n"), line.size());
    if (line.substr(0, end) == word) return true;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return false;
}

// The ids begin with six digits, so that they sort as they were given.
bool counts(const Machine& machine, const LedgerEntry& entry) {
  return entry.id > read_latch(machine.files).after;
}

struct Manager {
  std::string_view process;  // as the kernel shows it: 15 bytes
  std::string_view name;
};
constexpr std::array<Manager, 6> kManagers = {{{"power-profiles-", "power-profiles-daemon"},
                                               {"lact", "LACT"},
                                               {"lactd", "LACT"},
                                               {"tuned", "tuned"},
                                               {"corectrl_helper", "CoreCtrl"},
                                               {"gamemoded", "GameMode"}}};

bool is_setting(ActionKind kind) {
  return kind == ActionKind::PowerCap || kind == ActionKind::PerformanceLevel || kind == ActionKind::PowerProfile ||
         kind == ActionKind::ClockCap;
}

// Connectors with a display that is lit, of the card's DRM node.
std::vector<std::string> lit_connectors(const Machine& machine, const Target& target) {
  std::vector<std::string> out;
  for (const std::string& card : machine.hardware.list(target.dir + "/drm")) {
    if (!card.starts_with("card")) continue;
    const std::string folder = target.dir + "/drm/" + card;
    for (const std::string& connector : machine.hardware.list(folder)) {
      if (!connector.starts_with(card + "-")) continue;
      const std::string enabled = value_of(machine, folder + "/" + connector + "/enabled");
      if (value_of(machine, folder + "/" + connector + "/status") == "connected" && enabled != "disabled")
        out.push_back(connector);
    }
  }
  return out;
}

Result<void> check_jobs(const Machine& machine, const std::string& pci, std::vector<std::string>& warnings) {
  const std::string root = sysroot_of(machine.hardware);
  const auto before = canary::look_for_clients(root, pci);
  machine.outside.pause(kBetweenLooks);
  const auto after = canary::look_for_clients(root, pci);
  const auto verdict = canary::compare_looks(before, after, {::getpid(), ::getppid()});
  if (verdict.busy)
    return fail(ErrorCode::Unavailable,
                "the GPU is in use: " + verdict.reason + "; only with_jobs=true allows it then");
  if (!before.everybody || !after.everybody)
    warnings.emplace_back("not every process could be looked at: somebody may use the GPU");
  return {};
}

}  // namespace

std::vector<std::string> safe_mode(const Machine& machine) {
  std::vector<std::string> out;
  if (has_word(value_of(machine, "/proc/cmdline"), kObserveWord))
    out.push_back(std::string(kObserveWord) + " is on the kernel's command line");
  if (machine.files.stat(kObserveFile)) out.push_back(std::string(kObserveFile) + " is there");
  if (const Latch latch = read_latch(machine.files); latch.on)
    out.push_back(latch.reason + (latch.since.empty() ? "" : " (" + latch.since + ")") +
                  "; gpuhealthctl actions resume ends it");
  return out;
}

Result<void> enter_safe_mode(const Machine& machine, const std::string& reason) {
  Latch latch = read_latch(machine.files);
  if (latch.on) return {};
  latch.on = true;
  latch.reason = reason;
  latch.since = utc_text(machine.outside.now);
  (void)machine.outside.journal(2, "safe mode: nothing is changed any more, because " + reason, {});
  return write_latch(machine, latch);
}

Result<void> leave_safe_mode(const Machine& machine) {
  Latch latch;
  const auto entries = read_ledger(machine.files);
  if (!entries.empty()) latch.after = entries.back().id;
  latch.since = utc_text(machine.outside.now);
  latch.reason = "ended by a person";
  return write_latch(machine, latch);
}

std::vector<LedgerEntry> entries_that_count(const Machine& machine) {
  auto out = read_ledger(machine.files);
  std::erase_if(out, [&](const LedgerEntry& entry) { return !counts(machine, entry); });
  return out;
}

std::string breaker_opens(std::span<const LedgerEntry> entries, WallTime now) {
  const auto recent = std::ranges::count_if(entries, [&](const LedgerEntry& entry) {
    const auto then = utc_from(entry.started);
    return !entry.rule.empty() && then && now - *then < kBreakerWindow;
  });
  if (recent < kBreakerMost) return {};
  return "rules have acted " + std::to_string(recent) + " times within an hour";
}

int boots_without_confirmation(std::span<const LedgerEntry> entries) {
  struct Boot {
    std::string id;
    bool lost = false, good = false;
  };
  std::vector<Boot> boots;
  for (const LedgerEntry& entry : entries) {
    if (entry.owner != "actions" || entry.steps.empty()) continue;
    if (boots.empty() || boots.back().id != entry.boot_id) boots.push_back({entry.boot_id});
    boots.back().lost |= entry.state == "lost";
    // What came back by itself, because nobody found it good in time or it was cut off, is no sign of health.
    const bool asked_back = entry.state == "reverted" && entry.facts.contains(std::string(kAskedBack));
    boots.back().good |= entry.state == "confirmed" || entry.state == "over" || asked_back;
  }
  const auto good =
      std::ranges::find_if(boots.rbegin(), boots.rend(), [](const Boot& boot) { return boot.good || !boot.lost; });
  return static_cast<int>(good - boots.rbegin());
}

std::string verdict_of(std::string_view condition) {
  const auto dash = condition.rfind('-');
  if (dash == std::string_view::npos || dash + 1 == condition.size() ||
      condition.find_first_not_of("0123456789", dash + 1) != std::string_view::npos)
    return std::string(condition);
  return std::string(condition.substr(0, dash));
}

bool rebooted_for(std::span<const LedgerEntry> entries, const std::string& condition, WallTime now) {
  return std::ranges::any_of(entries, [&](const LedgerEntry& entry) {
    const auto then = utc_from(entry.started);
    return entry.action == "reboot" && entry.state != "failed" && then && now - *then < kSameVerdict &&
           verdict_of(entry.condition) == verdict_of(condition);
  });
}

Result<void> check_use(const Machine& machine, const Actuator& actuator, const Asked& asked,
                       std::vector<std::string>& warnings) {
  if (actuator.needs_dark && asked.target && !asked.params.flag("with_display")) {
    const auto lit = lit_connectors(machine, *asked.target);
    if (!lit.empty())
      return fail(ErrorCode::Unavailable,
                  "a display hangs on this GPU (" + lit.front() + "); only with_display=true allows it then");
  }
  if (!actuator.needs_idle || asked.params.flag("with_jobs")) return {};
  return check_jobs(machine, asked.target ? asked.target->pci : std::string(), warnings);
}

std::vector<std::string> other_managers(const Machine& machine, const Asked& asked) {
  std::vector<std::string> out;
  if (!is_setting(asked.request->kind)) return out;
  for (const std::string& pid : machine.hardware.list("/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string process = value_of(machine, "/proc/" + pid + "/comm");
    const auto* const found = std::ranges::find(kManagers, process, &Manager::process);
    if (found == kManagers.end()) continue;
    std::string line = std::string(found->name) + " runs here (pid " + pid + ") and may set it again";
    out.push_back(std::move(line));
  }
  if (!asked.target || !must_be_awake(machine, *asked.target)) return out;
  const std::string level = value_of(machine, asked.target->dir + "/power_dpm_force_performance_level");
  if (level.empty() || level == "auto") return out;
  const bool ours = std::ranges::any_of(read_ledger(machine.files), [&](const LedgerEntry& entry) {
    const bool sets_level = entry.action == "performance-level" || entry.action == "power-profile";
    return sets_level && entry.device == asked.target->id && in_force(entry);
  });
  if (!ours) out.push_back("the performance level is " + level + ": somebody has set it by hand");
  return out;
}

}  // namespace gpuhealth::actions
