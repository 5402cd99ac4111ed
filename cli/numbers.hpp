// SPDX-License-Identifier: Apache-2.0
// Values and times as people read them. Times are local; in JSON they are UTC (json.hpp).
#pragma once

#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/reading.hpp"

namespace gpuhealth::cli {

// "45 C", "2479 MHz", "11.2 GiB", "16 GT/s". No more digits than the sensor has.
std::string format_value(double value, Unit unit);
// "3.2" for 3.25, "12" for 12.0: at most one digit after the point, none from 100 on.
std::string format_number(double value);
// The value where there is one, else why not: "asleep", "not there", "cannot be read (Input/output error)".
std::string format_reading(const Reading& reading);
std::string_view in_words(ReadingStatus status);

std::string format_bytes(double bytes);          // "512 MiB"
std::string format_duration(Duration duration);  // "3 min", "2 h 5 min", "4 days"
std::string format_time(WallTime time);          // "2026-11-30 14:02:07"
// "14:02" today, "Mon 14:02" within a week, "2026-11-03 14:02" else.
std::string format_time_short(WallTime time, WallTime now);
// "since 14:02 (3 min)"
std::string format_since(WallTime since, WallTime now);

// "Gen4" for 16; "3 GT/s" for a speed that no generation has.
std::string format_link_speed(double gigatransfers);

// "Input/output error" for EIO; stable across locales.
std::string errno_text(int sys_errno);
// "EIO" for EIO; "errno 999" for one that has no name.
std::string errno_name(int sys_errno);

}  // namespace gpuhealth::cli
