// SPDX-License-Identifier: Apache-2.0
// Where metrics go beside the scrape, and what this program costs.
#pragma once

#include <string>

#include "core/error.hpp"
#include "exporter/state.hpp"

namespace gpuhealth::exporter {

// Beside, then renamed: whoever reads sees the old text or the new one. Mode 0644. `path` must end in ".prom".
Result<void> write_textfile(const std::string& path, const std::string& text);

OwnCost own_cost();

}  // namespace gpuhealth::exporter
