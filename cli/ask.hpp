// SPDX-License-Identifier: Apache-2.0
// What people type, understood: times, metrics, devices, conditions. Each refusal says what would have been right.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/error.hpp"
#include "core/reading.hpp"
#include "dbus/client.hpp"

namespace gpuhealth::cli {

// "24h", "7d", "90m", "30s", "2w" before now; "2026-11-01", "2026-11-01 14:00[:30]" (also with T) local; "now".
Result<WallTime> parse_when(std::string_view text, WallTime now);

Result<const ReadingInfo*> parse_metric(std::string_view text);

// By id, PCI address (short form too), a unique beginning of the id, or a part of the name that only one has.
Result<const dbus::DeviceView*> choose_device(std::span<const dbus::DeviceView> devices, std::string_view text);

// By id or a unique beginning of one.
Result<const Condition*> choose_condition(std::span<const Condition> conditions, std::string_view text);

}  // namespace gpuhealth::cli
