// SPDX-License-Identifier: Apache-2.0
// What the text of a source's file says: a value for each of its row's readings.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "telemetry/source_table.hpp"

namespace gpuhealth::telemetry {

using Values = std::array<std::optional<double>, 3>;

// `row` null: the counters of a RAS block. Nothing at all where the text is not of the row's format.
std::optional<Values> parse_text(const SourceRow* row, std::string_view text);

}  // namespace gpuhealth::telemetry
