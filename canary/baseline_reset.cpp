// SPDX-License-Identifier: Apache-2.0
#include "canary/baseline_reset.hpp"

#include <nlohmann/json.hpp>

#include "canary/measurement.hpp"
#include "core/json.hpp"

namespace gpuhealth::canary {

std::string to_json_line(const BaselineReset& reset) {
  nlohmann::ordered_json out;
  out["reset"] = true;
  out["device"] = reset.device;
  out["canary"] = reset.canary;
  out["who"] = reset.who;
  out["why"] = reset.why;
  out["time"] = time_text(reset.time);
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::optional<BaselineReset> parse_reset(std::string_view line) {
  if (line.find("\"reset\"") == std::string_view::npos) return std::nullopt;
  const auto json = parse_json<nlohmann::json>(line);
  if (!json.is_object() || !json.contains("reset") || json["reset"] != true) return std::nullopt;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  return BaselineReset{text("device"), text("canary"), text("who"), text("why"), parse_time(text("time")).value_or(0)};
}

}  // namespace gpuhealth::canary
