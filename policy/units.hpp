// SPDX-License-Identifier: Apache-2.0
// Policies write times, sizes and windows as the whole house does.
#pragma once

#include "core/units.hpp"

namespace gpuhealth::policy {
using units::matches;
using units::parse_bytes;
using units::parse_date_time;
using units::parse_duration;
using units::parse_last_day;
using units::parse_number;
using units::parse_quantity;
using units::parse_times;
using units::parse_whole;
using units::parse_window;
using units::text_of;
using units::Window;
using units::within;
}  // namespace gpuhealth::policy
