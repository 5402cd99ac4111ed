// SPDX-License-Identifier: Apache-2.0
#include "sim/kfd.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <system_error>

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

const fs::path kTopology = "devices/virtual/kfd/kfd/topology";

unsigned location_id(const PciAddress& a) {
  return unsigned{a.bus} << 8 | unsigned{a.device} << 3 | a.function;
}

std::string link_text(unsigned from, unsigned to) {
  return fmt::format(
      "type 2\nversion_major 0\nversion_minor 0\nnode_from {}\nnode_to {}\nweight 20\nmin_latency 0\nmax_latency 0\n"
      "min_bandwidth 312\nmax_bandwidth 31504\nrecommended_transfer_size 0\nflags 1\n",
      from, to);
}

std::string gpu_properties(const Card& card, unsigned render_minor) {
  const CardModel& m = card.model;
  return fmt::format(
      "cpu_cores_count 0\nsimd_count {}\nmem_banks_count 1\ncaches_count 0\nio_links_count 1\np2p_links_count 0\n"
      "cpu_core_id_base 0\nsimd_id_base 2147487744\nmax_waves_per_simd 16\nlds_size_in_kb 64\ngds_size_in_kb 0\n"
      "num_gws 64\nwave_front_size {}\narray_count 8\nsimd_arrays_per_engine 2\ncu_per_simd_array 10\nsimd_per_cu {}\n"
      "max_slots_scratch_cu 32\ngfx_target_version {}\nvendor_id 4098\ndevice_id {}\nlocation_id {}\ndomain {}\n"
      "drm_render_minor {}\nhive_id 0\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 6\n"
      "num_cp_queues 8\nmax_engine_clk_fcompute {}\nlocal_mem_size 0\nfw_version 602\ncapability 671590528\n"
      "debug_prop 1495\nsdma_fw_version 21\nunique_id {}\nnum_xcc 1\nmax_engine_clk_ccompute 5200\n",
      m.simd_count, m.wave_size, m.wave_size == 64 ? 4 : 2, m.gfx_target_version, m.device_id,
      location_id(card.place.gpu), card.place.gpu.domain, render_minor, m.gfx_levels_mhz.back(),
      m.has_unique_id ? card.unique_id : 0);
}

}  // namespace

void write_kfd_root(Folder& sys) {
  sys.file("devices/virtual/kfd/kfd/uevent", "MAJOR=241\nMINOR=0\nDEVNAME=kfd\n");
  sys.link("class/kfd/kfd", "devices/virtual/kfd/kfd");
  sys.file(kTopology / "generation_id", "2\n");
  sys.file(kTopology / "system_props", "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
  const fs::path cpu = kTopology / "nodes/0";
  sys.file(cpu / "gpu_id", "0\n");
  sys.file(cpu / "name", "\n");
  sys.file(cpu / "properties",
           "cpu_cores_count 16\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 0\n"
           "drm_render_minor 0\nlocation_id 0\ndomain 0\nunique_id 0\n");
  sys.file(cpu / "mem_banks/0/properties", "heap_type 0\nsize_in_bytes 68719476736\n");
  sys.dir(cpu / "io_links");
  sys.dir(cpu / "p2p_links");
}

void write_kfd_node(Folder& sys, const Card& card, unsigned node, unsigned render_minor) {
  const fs::path gpu = kTopology / "nodes" / std::to_string(node);
  sys.file(gpu / "gpu_id", fmt::format("{}\n", 40000 + node));
  sys.file(gpu / "name", card.model.chip + "\n");
  sys.file(gpu / "properties", gpu_properties(card, render_minor));
  sys.file(gpu / "mem_banks/0/properties",
           fmt::format("heap_type 1\nsize_in_bytes {}\nflags 0\nwidth 384\nmem_clk_max {}\n", card.model.vram_bytes,
                       card.model.memory_levels_mhz.back()));
  sys.file(gpu / "io_links/0/properties", link_text(node, 0));
  sys.dir(gpu / "p2p_links");
  sys.file(kTopology / "nodes/0/io_links" / std::to_string(node - 1) / "properties", link_text(0, node));
}

namespace {

// The folder of the GPU's node; empty where it has none.
fs::path node_of(const fs::path& sys, const PciAddress& gpu) {
  const std::string wanted = fmt::format("location_id {}", location_id(gpu));
  std::error_code ignored;
  for (const auto& node : fs::directory_iterator(sys / kTopology / "nodes", ignored)) {
    std::ifstream properties(node.path() / "properties");
    bool found = false;
    for (std::string line; std::getline(properties, line);) found = found || line == wanted;
    if (found && node.path().filename() != "0") return node.path();
  }
  return {};
}

}  // namespace

std::optional<unsigned> kfd_gpu_id(const fs::path& sys, const PciAddress& gpu) {
  const auto node = node_of(sys, gpu);
  unsigned id = 0;
  if (node.empty() || !(std::ifstream(node / "gpu_id") >> id)) return std::nullopt;
  return id;
}

void remove_kfd_node(const fs::path& sys, const PciAddress& gpu) {
  const auto node = node_of(sys, gpu);
  if (node.empty()) return;
  std::error_code ignored;
  const unsigned long number = std::stoul(node.filename().string());
  fs::remove_all(sys / kTopology / "nodes/0/io_links" / std::to_string(number - 1), ignored);
  fs::remove_all(node, ignored);
}

}  // namespace gpuhealth::sim
