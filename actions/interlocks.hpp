// SPDX-License-Identifier: Apache-2.0
// What keeps an action from being done: safe mode, the breaker, jobs, displays, a reboot that was tried already; and
// what has to be said: other programs that manage the GPU.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {

inline constexpr std::string_view kObserveWord = "gpuhealth.mode=observe";  // on the kernel's command line
inline constexpr std::string_view kObserveFile = "/etc/gpuhealthd/observe";
inline constexpr std::string_view kSafeModeFile = "/var/lib/gpuhealthd/safe-mode.json";  // what we fell into ourselves

inline constexpr int kBreakerMost = 12;  // actions of rules, on the whole machine, within
inline constexpr std::chrono::hours kBreakerWindow{1};
inline constexpr int kBootsWithoutConfirmation = 3;
inline constexpr std::chrono::hours kSameVerdict{7 * 24};

inline constexpr std::string_view kAskedBack = "asked_back";  // a fact of an entry: who wanted it taken back

// Why nothing is written; empty: it may be.
std::vector<std::string> safe_mode(const Machine& machine);
// The breaker or the boots: lasts until a person ends it.
Result<void> enter_safe_mode(const Machine& machine, const std::string& reason);
Result<void> leave_safe_mode(const Machine& machine);

// Entries since a person last ended a safe mode.
std::vector<LedgerEntry> entries_that_count(const Machine& machine);
// Too many actions of rules in the window before now: the sentence that says so; empty: not too many.
std::string breaker_opens(std::span<const LedgerEntry> entries, WallTime now);
// Boots in a row, up to the last one, in which something was applied and nothing ever found good.
int boots_without_confirmation(std::span<const LedgerEntry> entries);
// The part of a condition's id that a reboot does not change: type and device.
std::string verdict_of(std::string_view condition);
bool rebooted_for(std::span<const LedgerEntry> entries, const std::string& condition, WallTime now);

// Jobs and displays, as the actuator wants it.
Result<void> check_use(const Machine& machine, const Actuator& actuator, const Asked& asked,
                       std::vector<std::string>& warnings);
// "LACT runs here and may set it again", "the performance level is manual": one line each.
std::vector<std::string> other_managers(const Machine& machine, const Asked& asked);

}  // namespace gpuhealth::actions
