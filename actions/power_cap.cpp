// SPDX-License-Identifier: Apache-2.0
// hwmon powerN_cap, in microwatts and whole watts (amdgpu_pm.c). The range changes between kernels: 6.1 has no minimum,
// 6.7 and newer have the board's, and MI200 and MI300 say 0. A cap that is far too low switches the limiter of some
// boards off, so there is a floor of our own.
#include <algorithm>
#include <cmath>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::int64_t kMicro = 1'000'000;
constexpr std::int64_t kOwnFloorPercent = 50;  // of the default

// What a driver keeps below a watt is none of ours: amdgpu cuts it off when it is written.
std::string watts(std::int64_t microwatts) {
  return std::to_string(microwatts / kMicro) + " W";
}

// "power1", or the one whose label is asked for: Van Gogh has slowPPT and fastPPT.
Result<std::string> find_domain(const Machine& machine, const Target& target, const std::string& label) {
  std::string labels;
  for (const char* name : {"power1", "power2"}) {
    std::string base = target.hwmon + "/" + name;
    if (!machine.hardware.is_file(base + "_cap")) continue;
    const std::string own = value_of(machine, base + "_label");
    if (label.empty() || label == own || label == name) return base;
    labels += (labels.empty() ? "" : ", ") + (own.empty() ? std::string(name) : own);
  }
  if (labels.empty())
    return fail(ErrorCode::NotFound,
                target.pci + " has no power limit: the driver offers no power1_cap (APUs, virtual functions)");
  return fail(ErrorCode::InvalidInput, target.pci + " has no power limit named " + label + "; there is " + labels);
}

Result<std::int64_t> limit(const Machine& machine, const std::string& path) {
  const auto text = read_value(machine, path);
  if (!text) return tl::unexpected<Error>(text.error());
  const auto value = number_of(*text);
  if (value) return *value;
  return fail(ErrorCode::Unavailable,
              path + (text->empty() ? std::string(" is empty: the driver could not ask the card")
                                    : " says \"" + *text + "\", not a number"));
}

// After a reload of the driver some cards call the lowered limit their default, so the highest one ever seen counts.
std::int64_t known_default(const Machine& machine, const Target& target, const std::string& domain, std::int64_t now) {
  for (const LedgerEntry& entry : read_ledger(machine.files)) {
    if (entry.action != "power-cap" || entry.device != target.id) continue;
    const auto domain_then = entry.facts.find("domain");
    const auto then = entry.facts.find("default");
    if (domain_then == entry.facts.end() || then == entry.facts.end() || domain_then->second != domain) continue;
    now = std::max(now, number_of(then->second).value_or(0));
  }
  return now;
}

struct Range {
  std::int64_t standard = 0, low = 0, high = 0;
};

Result<Range> range_of(const Machine& machine, const Target& target, const std::string& base) {
  Range out;
  const auto standard = limit(machine, base + "_cap_default");
  const auto high = limit(machine, base + "_cap_max");
  // Kernels before 5.x have no default: the top of the range is the best that is known.
  if (!standard && !high) return tl::unexpected<Error>(high.error());
  out.high = high.value_or(*standard);
  out.standard =
      std::min(out.high, known_default(machine, target, base.substr(base.rfind('/') + 1), standard.value_or(out.high)));
  if (out.standard <= 0)
    return fail(ErrorCode::Unavailable,
                target.pci + " says 0 W is its default limit: this part of the card has none (MI200's second die)");
  const std::int64_t own = (out.standard * kOwnFloorPercent / 100 + kMicro - 1) / kMicro * kMicro;
  out.low = std::max(limit(machine, base + "_cap_min").value_or(0), own);
  return out;
}

Result<std::int64_t> wish(const Asked& asked, const Range& range) {
  const auto by_watts = asked.params.number("watts");
  const auto by_percent = asked.params.number("percent");
  if (by_watts.has_value() == by_percent.has_value())
    return fail(ErrorCode::InvalidInput, "power-cap needs one of watts and percent");
  const double value = by_watts ? *by_watts * 1e6 : static_cast<double>(range.standard) * *by_percent / 100;
  if (value <= 0 || value > 1e12) return fail(ErrorCode::InvalidInput, "a power limit must be above 0 W and sensible");
  const std::int64_t rounded = static_cast<std::int64_t>(std::floor(value / 1e6 + 1e-9)) * kMicro;
  const bool above = asked.params.flag("above_default");
  if (rounded > range.standard && !above)
    return fail(ErrorCode::InvalidInput, watts(rounded) + " is above the card's default of " + watts(range.standard) +
                                             "; only above_default=true allows that");
  if (rounded > range.high && above)
    return fail(ErrorCode::InvalidInput, watts(rounded) + " is above what the card allows, " + watts(range.high));
  return rounded;
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  const Target& target = *asked.target;
  if (auto awake = must_be_awake(machine, target); !awake) return tl::unexpected<Error>(awake.error());
  const auto base = find_domain(machine, target, asked.params.text("domain"));
  if (!base) return tl::unexpected<Error>(base.error());
  const auto now = limit(machine, *base + "_cap");
  if (!now) return tl::unexpected<Error>(now.error());
  const auto range = range_of(machine, target, *base);
  if (!range) return tl::unexpected<Error>(range.error());
  auto wanted = wish(asked, *range);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  Plan out;
  LedgerEntry& entry = out.entry;
  if (*wanted < range->low) {
    entry.warnings.push_back(watts(*wanted) + " is below the floor; " + watts(range->low) +
                             " is taken (the higher of " + std::to_string(kOwnFloorPercent) +
                             " % of the default and of the driver's own minimum)");
    *wanted = range->low;
  }
  entry.before = watts(*now);
  entry.wanted = watts(*wanted);
  entry.facts = {{"domain", base->substr(base->rfind('/') + 1)}, {"default", std::to_string(range->standard)}};
  const std::string file = *base + "_cap";
  entry.steps.push_back(value_step(file, std::to_string(*wanted)));
  entry.back.push_back(value_step(file, std::to_string(*now)));
  if (*now == *wanted) out.already = "the limit is " + watts(*now) + " already";
  if (*now < *wanted && !asked.by_person && !asked.params.flag("above_default"))
    out.already = "the limit is " + watts(*now) + " already, which is lower than what is asked for";
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const auto now = limit(machine, entry.steps.front().path);
  if (!now) return tl::unexpected<Error>(now.error());
  return watts(*now);
}

}  // namespace

const Actuator kPowerCap = {.kind = ActionKind::PowerCap, .on_device = true, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
