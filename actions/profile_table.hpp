// SPDX-License-Identifier: Apache-2.0
// The table in pp_power_profile_mode: a number and a name a profile, a star at the one in force. Its columns differ
// from one ASIC to the next; lines of parameters begin with no plain number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::actions {

struct PowerProfile {
  int number = 0;
  std::string name;  // "3D_FULL_SCREEN"
  bool active = false;
};
std::vector<PowerProfile> parse_profiles(std::string_view text);

// The highest clock in pp_od_clk_voltage, section OD_SCLK, and the range that the driver allows it (OD_RANGE).
struct ClockTable {
  int level = 0;  // the number of the highest one, as "s LEVEL MHZ" names it
  int highest_mhz = 0;
  std::optional<int> low_mhz, high_mhz;
};
std::optional<ClockTable> parse_clock_table(std::string_view text);

}  // namespace gpuhealth::actions
