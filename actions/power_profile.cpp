// SPDX-License-Identifier: Apache-2.0
// pp_power_profile_mode takes a profile's number, and the older drivers take it under the level "manual" alone.
#include <algorithm>

#include "actions/actuator.hpp"
#include "actions/profile_table.hpp"

namespace gpuhealth::actions {
namespace {

std::string in_words(const std::string& level, const PowerProfile& profile) {
  return profile.name + " under " + level;
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  if (auto awake = must_be_awake(machine, *asked.target); !awake) return tl::unexpected<Error>(awake.error());
  const std::string level_file = asked.target->dir + "/power_dpm_force_performance_level";
  const std::string file = asked.target->dir + "/pp_power_profile_mode";
  const auto level = read_value(machine, level_file);
  if (!level) return tl::unexpected<Error>(level.error());
  const auto text = machine.hardware.read(file, std::size_t{1} << 16);
  if (!text) return tl::unexpected<Error>(text.error());
  const auto profiles = parse_profiles(*text);
  const auto now = std::ranges::find(profiles, true, &PowerProfile::active);
  if (now == profiles.end())
    return fail(ErrorCode::Unavailable, file + " does not say which profile is in force, so it could not come back");
  const std::string name = asked.params.text("profile");
  const auto wanted = std::ranges::find(profiles, name, &PowerProfile::name);
  if (wanted == profiles.end() || name == "CUSTOM") {
    std::string all;
    for (const PowerProfile& one : profiles)
      if (one.name != "CUSTOM") all += (all.empty() ? "" : ", ") + one.name;
    return fail(ErrorCode::InvalidInput, "the driver has no profile " + name + " for this GPU; it has " + all);
  }
  if (now->name == "CUSTOM" && !asked.by_person)
    return fail(ErrorCode::Unavailable, "somebody has set a profile of their own (CUSTOM), which would be lost");
  Plan out;
  out.entry.before = in_words(*level, *now);
  out.entry.wanted = in_words("manual", *wanted);
  if (now == wanted) out.already = "the profile is " + name + " already";
  if (*level != "manual") {
    out.entry.steps.push_back(value_step(level_file, "manual"));
    out.entry.warnings.emplace_back("the performance level is manual as long as the profile is in force");
  }
  out.entry.steps.push_back(value_step(file, std::to_string(wanted->number)));
  out.entry.back.push_back(value_step(file, std::to_string(now->number)));
  if (*level != "manual") out.entry.back.push_back(value_step(level_file, *level));
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const std::string file = entry.steps.back().path;
  const auto text = machine.hardware.read(file, std::size_t{1} << 16);
  if (!text) return tl::unexpected<Error>(text.error());
  const auto level = read_value(machine, file.substr(0, file.rfind('/')) + "/power_dpm_force_performance_level");
  if (!level) return tl::unexpected<Error>(level.error());
  const auto profiles = parse_profiles(*text);
  const auto now = std::ranges::find(profiles, true, &PowerProfile::active);
  return in_words(*level, now == profiles.end() ? PowerProfile{0, "no profile", false} : *now);
}

}  // namespace

const Actuator kPowerProfile = {.kind = ActionKind::PowerProfile, .on_device = true, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
