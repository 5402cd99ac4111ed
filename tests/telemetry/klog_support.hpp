// SPDX-License-Identifier: Apache-2.0
// Events of a log as short lines, to compare with what a reader of the log would write down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/klog/classifier.hpp"

namespace gpuhealth::klog::test {

// "12 gpu.reset.failed critical 0000:03:00.0 x1"; "-" for no device.
inline std::string brief(const Event& event) {
  return std::to_string(event.line) + " " + std::string(info(event.type).name) + " " +
         std::string(to_string(event.severity)) + " " + (event.device ? to_string(*event.device) : "-") + " x" +
         std::to_string(event.count);
}

inline std::vector<std::string> said_of(std::string_view log) {
  std::vector<std::string> out;
  for (const auto& event : classify(log)) out.push_back(brief(event));
  return out;
}

using Said = std::vector<std::string>;

}  // namespace gpuhealth::klog::test
