// SPDX-License-Identifier: Apache-2.0
// /org/gpuhealth1/kernel on the bus.
#pragma once

#include <bitset>

#include "dbus/kernel.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::dbus {

struct Objects;
class Model;

namespace kernel_property {
enum : std::size_t { Running, Next, NextReason, LastKnownGood, Pinned, Trial, Hold, State, Advisories, Count };
inline constexpr const char* const kNames[Count] = {"Running", "Next", "NextReason", "LastKnownGood", "Pinned",
                                                    "Trial",   "Hold", "State",      "Advisories"};
}  // namespace kernel_property
using KernelChanges = std::bitset<kernel_property::Count>;
KernelChanges differences(const KernelState& before, const KernelState& after);

extern const sd_bus_vtable kKernelTable[];

}  // namespace gpuhealth::dbus
