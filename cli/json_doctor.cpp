// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

namespace gpuhealth::cli {

Json json_doctor(std::span<const CheckResult> results) {
  Json out;
  out["checks"] = Json::array();
  for (const auto& r : results) {
    out["checks"].push_back({{"name", r.name},
                             {"state", to_string(r.state)},
                             {"found", r.found},
                             {"why", r.why},
                             {"advice", text_or_null(r.advice)}});
  }
  return out;
}

}  // namespace gpuhealth::cli
