// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "cli/json.hpp"

namespace gpuhealth::cli {

Json metrics_number(const telemetry::MetricsField& field, std::size_t index) {
  if (index >= field.values.size() || !field.values[index]) return nullptr;
  const double value = *field.values[index];
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::abs(value) < exact || index >= field.raw.size()) return number(value);
  if (value < 0) return static_cast<std::int64_t>(field.raw[index]);  // raw is two's complement then
  return field.raw[index];
}

Json json_metrics(const telemetry::GpuMetrics& metrics) {
  Json out;
  out["format"] = metrics.format;
  out["content"] = metrics.content;
  out["structure_size"] = metrics.structure_size;
  out["status"] = telemetry::to_string(metrics.status);
  if (!metrics.note.empty()) out["note"] = metrics.note;
  out["fields"] = Json::object();
  for (const auto& field : metrics.fields) {
    if (!field.array) {
      out["fields"][field.name] = metrics_number(field, 0);
      continue;
    }
    Json values = Json::array();
    for (std::size_t i = 0; i < field.values.size(); ++i) values.push_back(metrics_number(field, i));
    out["fields"][field.name] = std::move(values);
  }
  return out;
}

}  // namespace gpuhealth::cli
