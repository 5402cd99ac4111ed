// SPDX-License-Identifier: Apache-2.0
// What canary accept asks besides results: the card's own counters of errors, and what one look at it finds. What
// cannot be read is said, and clears nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/json_canary.hpp"

namespace gpuhealth::cli {

struct HardwareCheck {
  std::string what;     // "memory errors", "PCIe errors", "clocks", "condition"
  std::string verdict;  // "ok", "bad", "unknown"
  std::string detail;
};
// `inspection`: as gpuhealthctl inspect --json prints it; anything else is a card that cannot be read.
std::vector<HardwareCheck> check_hardware(const Json& inspection, std::string_view pci,
                                          const std::vector<RunRow>& rows);

// "hardware cleared" only where everything was seen and is good; "incomplete" where something could not be seen.
std::string acceptance_verdict(const std::vector<RunRow>& rows, const std::vector<HardwareCheck>& checks);

}  // namespace gpuhealth::cli
