// SPDX-License-Identifier: Apache-2.0
// A person's word that what was known of a device (or of one canary on it) no longer holds: a line among the results.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuhealth::canary {

struct BaselineReset {
  std::string device, canary, who, why;  // no canary: all of them
  double time = 0;
};
std::string to_json_line(const BaselineReset& reset);
std::optional<BaselineReset> parse_reset(std::string_view line);  // nothing: the line is no reset

}  // namespace gpuhealth::canary
