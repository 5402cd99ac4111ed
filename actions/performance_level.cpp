// SPDX-License-Identifier: Apache-2.0
// power_dpm_force_performance_level. MI300 takes auto, manual and perf_determinism alone and answers EINVAL else.
#include <algorithm>
#include <array>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::string_view kFile = "/power_dpm_force_performance_level";

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  if (auto awake = must_be_awake(machine, *asked.target); !awake) return tl::unexpected<Error>(awake.error());
  const std::string level = asked.params.text("level");
  static constexpr std::array<std::string_view, 3> kLevels = {"auto", "low", "high"};
  if (std::ranges::find(kLevels, level) == kLevels.end())
    return fail(ErrorCode::InvalidInput, "performance-level: level must be auto, low or high, not \"" + level + "\"");
  const std::string file = asked.target->dir + std::string(kFile);
  const auto now = read_value(machine, file);
  if (!now) return tl::unexpected<Error>(now.error());
  if (now->empty()) return fail(ErrorCode::Unavailable, file + " is empty: the driver could not ask the card");
  Plan out;
  out.entry.before = *now;
  out.entry.wanted = level;
  if (*now == level) out.already = "the level is " + level + " already";
  const bool by_hand = *now == "manual" || *now == "perf_determinism";
  if (by_hand && !asked.by_person)
    return fail(ErrorCode::Unavailable, "the level is " + *now +
                                            ", so somebody has set clocks by hand, and they would be lost; a rule "
                                            "leaves that alone");
  if (by_hand)
    out.entry.warnings.push_back("clocks that were set by hand under " + *now +
                                 " are lost, also when this is reverted");
  out.entry.steps.push_back(value_step(file, level));
  out.entry.back.push_back(value_step(file, *now));
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  return read_value(machine, entry.steps.front().path);
}

}  // namespace

const Actuator kPerformanceLevel = {
    .kind = ActionKind::PerformanceLevel, .on_device = true, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
