// SPDX-License-Identifier: Apache-2.0
// Any bytes as what the kernel says of processes and of the compute driver's topology.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "fuzz/require.hpp"
#include "telemetry/fdinfo.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/proc.hpp"

using namespace gpuhealth::telemetry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An exact allocation: one byte further is the sanitizer's.
  const auto copy = std::make_unique<char[]>(size);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::string_view text(copy.get(), size);
  const auto info = parse_drm_fdinfo(text);
  require(info.engine_ns.size() <= size, "an engine takes a line");
  const auto stat = parse_proc_stat(text);
  require(!stat || text.find(')') != text.npos, "a process has a name");
  (void)parse_proc_io(text);
  (void)maps_compute_runtime(text);
  if (const auto node = parse_kfd_node(text)) {
    const auto name = gfx_name(node->gfx_target_version);
    require(name.empty() || name.starts_with("gfx"), "a name is a name or none");
    const auto cards = kfd_cards({*node, *node});
    require(cards.size() == (node->is_gpu() ? 1u : 0u), "twice the same node is one card");
  }
  (void)parse_kfd_link(text);
  return 0;
}
