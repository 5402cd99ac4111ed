// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

namespace gpuhealth::cli {

Json json_history(const ReadingInfo& metric, WallTime since, WallTime until, std::span<const Series> series) {
  Json out;
  out["metric"] = metric.name;
  out["unit"] = to_string(metric.unit);
  out["since"] = time_or_null(since);
  out["until"] = time_or_null(until);
  out["devices"] = Json::array();
  for (const Series& s : series) {
    Json points = Json::array();
    for (const auto& p : s.points) {
      points.push_back(
          {{"time", time_or_null(p.time)}, {"min", number(p.min)}, {"mean", number(p.mean)}, {"max", number(p.max)}});
    }
    out["devices"].push_back({{"id", s.device}, {"pci", s.pci}, {"label", s.label}, {"points", std::move(points)}});
  }
  return out;
}

}  // namespace gpuhealth::cli
