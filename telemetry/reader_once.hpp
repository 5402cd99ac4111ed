// SPDX-License-Identifier: Apache-2.0
// gpuhealth-reader --once: one look, printed as text, a reading a line. For people and tests; the daemon talks frames.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "telemetry/frame.hpp"

namespace gpuhealth::telemetry {

// "0000:41:00.0 temperature.edge 41 C valid", "0000:41:00.0 client 4242 3221225472", "note …". Returns 1 when there is
// no GPU.
int print_once(const std::function<void(const Request&, std::vector<std::uint8_t>&)>& answer, std::FILE* out);

}  // namespace gpuhealth::telemetry
