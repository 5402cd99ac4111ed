// SPDX-License-Identifier: Apache-2.0
#include "sim/device_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/metrics_table.hpp"
#include "sim/pci_files.hpp"
#include "sim/pm_files.hpp"

namespace gpuhealth::sim {
namespace {

void append(std::vector<FileText>& files, std::vector<FileText> more) {
  for (FileText& file : more) files.push_back(std::move(file));
}

PciFunction gpu_function(const Card& card) {
  const CardModel& m = card.model;
  // Behind a switch of its own the GPU's link is on the die: always at its best, whatever the slot does.
  const bool on_die = m.has_card_switch;
  return {.address = card.place.gpu,
          .device = m.device_id,
          .subsystem_vendor = m.subsystem_vendor,
          .subsystem_device = m.subsystem_device,
          .revision = m.revision,
          .pci_class = m.pci_class,
          .driver = card.state.driver_bound ? "amdgpu" : "",
          .link = on_die ? m.link_max : card.state.link,
          .link_max = m.link_max,
          .aer = card.state.aer};
}

PciFunction port_function(const Card& card, PortKind kind) {
  PciFunction f{.pci_class = 0x060400, .driver = "pcieport", .link = card.state.link, .link_max = card.model.link_max};
  switch (kind) {
    case PortKind::Root:
      f.address = card.place.root_port;
      f.vendor = 0x1022;
      f.device = 0x14db;  // a root port of AMD's desktop processors
      f.port = PciePort::Root;
      f.link_max = card.state.slot_max;
      f.aer = card.state.slot_aer;
      break;
    case PortKind::SwitchUp:
      f.address = card.place.switch_up;
      f.device = 0x1478;
      f.port = PciePort::SwitchUp;
      break;
    case PortKind::SwitchDown:
      f.address = card.place.switch_down;
      f.device = 0x1479;
      f.port = PciePort::SwitchDown;
      f.link = card.model.link_max;
      break;
  }
  return f;
}

constexpr std::string_view kProfileModes =
    "PROFILE_INDEX(NAME) CLOCK_TYPE(NAME) FPS MinActiveFreqType MinActiveFreq BoosterFreqType BoosterFreq "
    "PD_Data_limit_c PD_Data_error_coeff PD_Data_error_rate_coeff\n"
    " 0 BOOTUP_DEFAULT*:\n"
    "                    0(       GFXCLK)       0       1       0       4     800 4587520  -65536       0\n"
    "                    1(         FCLK)       0       3       0       1       0 3276800  -65536   -6553\n"
    " 1 3D_FULL_SCREEN :\n"
    "                    0(       GFXCLK)       0       0    1200       4     650 3932160   -3276  -65536\n"
    "                    1(         FCLK)       0       3       0       3       0 1310720   -6553   -6553\n"
    " 5        COMPUTE :\n"
    "                    0(       GFXCLK)       0       1       0       4     800 3932160  -65536  -65536\n"
    "                    1(         FCLK)       0       3       0       3       0 3932160  -65536  -65536\n";

std::vector<FileText> firmware_files() {
  constexpr std::array<std::pair<std::string_view, unsigned>, 12> kFirmware = {{{"smc", 0x004e8200},
                                                                                {"sos", 0x00311a00},
                                                                                {"rlc", 0x0000007b},
                                                                                {"me", 0x00000056},
                                                                                {"mec", 0x00000058},
                                                                                {"mec2", 0x00000058},
                                                                                {"pfp", 0x00000061},
                                                                                {"ce", 0x00000000},
                                                                                {"sdma", 0x00000015},
                                                                                {"sdma2", 0x00000015},
                                                                                {"vcn", 0x0311c007},
                                                                                {"asd", 0x210000a9}}};
  std::vector<FileText> files;
  files.reserve(kFirmware.size());
  for (const auto& [name, version] : kFirmware)
    files.push_back({fmt::format("fw_version/{}_fw_version", name), fmt::format("0x{:08x}\n", version)});
  return files;
}

std::vector<FileText> driver_fixed_files(const Card& card) {
  const CardModel& m = card.model;
  std::vector<FileText> files = {
      {"vbios_version", m.vbios_version + "\n"},
      {"mem_info_vram_total", fmt::format("{}\n", m.vram_bytes)},
      {"mem_info_vis_vram_total", fmt::format("{}\n", m.visible_vram_bytes)},
      {"mem_info_gtt_total", fmt::format("{}\n", m.gtt_bytes)},
      {"pp_power_profile_mode", std::string(kProfileModes)},
      {"thermal_throttling_logging",
       fmt::format("{}: thermal throttling logging enabled, with interval 60 seconds\n", to_string(card.place.gpu))}};
  if (m.has_unique_id) files.push_back({"unique_id", fmt::format("{:016x}\n", card.unique_id)});
  if (!m.vram_vendor.empty()) files.push_back({"mem_info_vram_vendor", m.vram_vendor + "\n"});
  append(files, firmware_files());
  append(files, hwmon_fixed_files(card));
  return files;
}

std::vector<FileText> driver_live_files(const Card& card) {
  const CardState& s = card.state;
  std::vector<FileText> files = {
      {"gpu_busy_percent", fmt::format("{}\n", s.busy_percent)},
      {"mem_info_vram_used", fmt::format("{}\n", s.vram_used)},
      {"mem_info_vis_vram_used", fmt::format("{}\n", std::min(s.vram_used, card.model.visible_vram_bytes))},
      {"mem_info_gtt_used", fmt::format("{}\n", s.gtt_used)},
      {"power_dpm_force_performance_level", s.performance_level + "\n"},
      {"power_dpm_state", "performance\n"},
      {"pcie_replay_count", fmt::format("{}\n", card.model.counts_replays ? s.replays : 0)}};
  if (!card.model.is_apu) files.push_back({"mem_busy_percent", fmt::format("{}\n", s.memory_busy_percent)});
  if (card.model.metrics != MetricsTable::None) files.push_back({"gpu_metrics", gpu_metrics_bytes(card)});
  append(files, hwmon_live_files(card));
  append(files, clock_files(card));
  append(files, ras_files(card));
  return files;
}

}  // namespace

std::vector<FileText> fixed_files(const Card& card) {
  std::vector<FileText> files = pci_identity_files(gpu_function(card));
  if (card.state.driver_bound) append(files, driver_fixed_files(card));
  return files;
}

std::vector<FileText> live_files(const Card& card) {
  std::vector<FileText> files = pci_live_files(gpu_function(card));
  files.push_back({"power/runtime_status", card.state.runtime_status + "\n"});
  files.push_back({"power_state", card.state.runtime_status == "suspended" ? "D3hot\n" : "D0\n"});
  if (card.state.driver_bound) append(files, driver_live_files(card));
  return files;
}

std::vector<FileText> fixed_port_files(const Card& card, PortKind kind) {
  return pci_identity_files(port_function(card, kind));
}

std::vector<FileText> live_port_files(const Card& card, PortKind kind) {
  std::vector<FileText> files = pci_live_files(port_function(card, kind));
  files.push_back({"power/runtime_status", "active\n"});
  return files;
}

}  // namespace gpuhealth::sim
