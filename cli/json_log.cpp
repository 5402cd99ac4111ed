// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

namespace gpuhealth::cli {

Json json_log(std::span<const klog::Event> events) {
  Json out = Json::array();
  for (const auto& event : events) {
    Json row;
    row["line"] = event.line;
    row["type"] = klog::info(event.type).name;
    row["severity"] = to_string(event.severity);
    row["device"] = event.device ? Json(to_string(*event.device)) : Json(nullptr);
    row["count"] = event.count;
    row["text"] = event.text;
    row["time"] = text_or_null(event.time);
    row["subject"] = text_or_null(event.subject);
    row["process"] = text_or_null(event.process);
    row["pid"] = event.pid == 0 ? Json(nullptr) : Json(event.pid);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace gpuhealth::cli
