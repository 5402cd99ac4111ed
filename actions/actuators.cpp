// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {
namespace {

// Rows of other files: their order of construction is not ours, so they are named and not copied at start.
constexpr std::array<const Actuator*, 16> kRows = {&kPowerCap,   &kPcieSpeed, &kPerformanceLevel, &kPowerProfile,
                                                   &kClockCap,   &kGpuReset,  &kPciRescan,        &kDrain,
                                                   &kSlurmDrain, &kReboot,    &kNotify,           &kCollectEvidence,
                                                   &kRunHook,    &kKernelPin, &kKernelTrial,      &kKernelHold};

}  // namespace

std::span<const Actuator* const> all_actuators() {
  return kRows;
}

const Actuator* actuator_for(ActionKind kind) {
  const auto* const row = std::ranges::find_if(kRows, [&](const Actuator* one) { return one->kind == kind; });
  return row == kRows.end() ? nullptr : *row;
}

const Actuator* actuator_for(const LedgerEntry& entry) {
  const auto kind = action_kind_from(entry.action);
  return kind && entry.owner == "actions" ? actuator_for(*kind) : nullptr;
}

}  // namespace gpuhealth::actions
