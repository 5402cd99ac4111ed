// SPDX-License-Identifier: Apache-2.0
// The gpu_metrics file of a synthetic card, written field by field in the order of kgd_pp_interface.h (kernel 6.12).
#pragma once

#include <cstdint>
#include <string>

#include "sim/card.hpp"

namespace gpuhealth::sim {

// Empty for a model without the file. Fields that the part's firmware does not fill hold all ones, as in the driver.
std::string gpu_metrics_bytes(const Card& card);

}  // namespace gpuhealth::sim
