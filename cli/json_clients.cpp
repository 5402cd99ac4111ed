// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

namespace gpuhealth::cli {

Json json_client(const GpuClient& client, const std::string& name) {
  const auto share = [](const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); };
  return {{"pid", client.pid},
          {"name", text_or_null(name)},
          {"vram_bytes", client.vram_bytes ? Json(*client.vram_bytes) : Json(nullptr)},
          {"gtt_bytes", client.gtt_bytes},
          {"engine_percent", share(client.engine_percent)},
          {"cpu_percent", share(client.cpu_percent)},
          {"compute", client.queues}};
}

Json json_compute_nodes(std::span<const ComputeNode> nodes) {
  Json out = Json::array();
  for (const auto& n : nodes) {
    out.push_back({{"node", n.node},
                   {"gpu_id", n.gpu_id},
                   {"partition", n.partition},
                   {"gfx", text_or_null(n.gfx)},
                   {"render_minor", n.render_minor < 0 ? Json(nullptr) : Json(n.render_minor)},
                   {"compute_units", n.compute_units}});
  }
  return out;
}

}  // namespace gpuhealth::cli
