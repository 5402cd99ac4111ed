// SPDX-License-Identifier: Apache-2.0
// What amdgpu's power management prints: hwmon, clock tables, RAS counters (amdgpu_pm.c, amdgpu_ras.c, kernel 6.12).
#pragma once

#include <vector>

#include "sim/card.hpp"
#include "sim/device_files.hpp"

namespace gpuhealth::sim {

std::vector<FileText> hwmon_fixed_files(const Card& card);
std::vector<FileText> hwmon_live_files(const Card& card);
std::vector<FileText> clock_files(const Card& card);
std::vector<FileText> ras_files(const Card& card);

}  // namespace gpuhealth::sim
