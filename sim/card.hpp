// SPDX-License-Identifier: Apache-2.0
// A synthetic AMD GPU: what never changes (CardModel), where it is plugged in, and what its sensors say now
// (CardState). Numbers of the models are those of real boards; unique ids start with 5ee0 so that nobody takes one for
// a real card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/pci.hpp"

namespace gpuhealth::sim {

struct TemperatureLimits {
  int critical_c = 0;
  int emergency_c = 0;  // 0: the part has no such file (before SOC15)
};

struct Link {
  double speed_gts = 0;
  unsigned width = 0;
  friend bool operator==(const Link&, const Link&) = default;
};

// Which hwmon power files the driver of kernel 6.12 offers (amdgpu_pm.c).
enum class PowerFiles : std::uint8_t { Average, Input, Both };
// Which gpu_metrics table the firmware interface of kernel 6.12 fills.
enum class MetricsTable : std::uint8_t { None, V1_3, V1_5, V2_1 };

struct CardModel {
  std::string name{};  // for people who read the demo; the kernel does not print it
  std::uint16_t device_id = 0;
  std::uint16_t subsystem_vendor = 0x1002;
  std::uint16_t subsystem_device = 0;
  std::uint8_t revision = 0;
  std::uint32_t pci_class = 0x030000;
  std::string vbios_version{};
  std::string chip{};  // KFD's name of the part: "navi31"
  unsigned gfx_target_version = 0;
  unsigned simd_count = 0;
  unsigned wave_size = 32;

  bool has_unique_id = true;
  bool has_card_switch = false;  // a 1002:1478 + 1002:1479 pair between slot and GPU
  bool is_apu = false;
  bool has_ras = false;
  bool counts_replays = false;  // else the file says 0 for ever (kernel 6.12)

  std::optional<TemperatureLimits> edge{};  // no limits: an APU, which has the edge sensor alone
  std::optional<TemperatureLimits> junction{};
  std::optional<TemperatureLimits> memory{};
  bool has_edge_sensor = true;  // MI300 hides it
  bool has_gfx_voltage = true;  // MI300 hides it

  PowerFiles power_files = PowerFiles::Average;
  bool has_power_cap = true;
  unsigned cap_default_w = 0;
  unsigned cap_min_w = 0;
  unsigned cap_max_w = 0;
  unsigned fan_max_rpm = 0;  // 0: a board without a fan
  bool has_fan_mode = true;  // fan1_enable and pwm1_enable

  std::uint64_t vram_bytes = 0;
  std::uint64_t visible_vram_bytes = 0;
  std::uint64_t gtt_bytes = 0;
  std::string vram_vendor{};  // empty: the file is absent

  std::vector<unsigned> gfx_levels_mhz{};
  std::vector<unsigned> memory_levels_mhz{};
  std::vector<unsigned> soc_levels_mhz{};
  std::vector<unsigned> fabric_levels_mhz{};
  bool three_level_gfx = false;            // RDNA2 and newer print lowest, current, highest
  std::vector<std::string> pcie_levels{};  // as pp_dpm_pcie prints them, without the star; empty: file absent
  Link link_max{};                         // the card end

  MetricsTable metrics = MetricsTable::V1_3;
  std::uint32_t idle_throttle_bits = 0;  // what the firmware always sets (Navi 3x and 4x: TEMP_HOTSPOT)
  std::uint64_t idle_indep_throttle_bits = 0;
  bool metrics_speed_stops_at_gen4 = false;  // kernel 6.12 writes 2.5 GT/s for a Gen5 link
};

CardModel rx580();
CardModel rx6900xt();
CardModel rx7900xtx();
CardModel rx9070();
CardModel phoenix_apu();
CardModel mi210();
CardModel mi300x();

struct RasCount {
  std::string block{};  // "umc"
  std::uint64_t uncorrectable = 0;
  std::uint64_t correctable = 0;
  std::optional<std::uint64_t> deferred{};
};

struct AerCounts {
  std::uint64_t receiver_errors = 0;
  std::uint64_t bad_tlp = 0;
  std::uint64_t nonfatal = 0;
  std::uint64_t fatal = 0;
};

struct CardState {
  double edge_c = 40;
  double junction_c = 44;
  double memory_c = 46;
  double power_w = 20;
  unsigned cap_w = 0;
  unsigned gfx_mhz = 0;
  unsigned memory_mhz = 0;
  unsigned soc_mhz = 0;
  unsigned fabric_mhz = 0;
  unsigned gfx_mv = 700;
  unsigned soc_mv = 800;
  unsigned fan_rpm = 0;
  unsigned busy_percent = 0;
  unsigned memory_busy_percent = 0;
  std::uint64_t vram_used = 0;
  std::uint64_t gtt_used = 0;
  std::uint64_t vram_losses = 0;  // by its ioctl alone
  Link link{};                    // the slot link, now
  Link slot_max{};                // what the platform end can do
  std::uint64_t replays = 0;
  AerCounts aer{};                  // of the GPU function
  AerCounts slot_aer{};             // of the port that it is plugged into
  std::uint32_t throttle_bits = 0;  // on top of the model's idle bits
  std::uint64_t indep_throttle_bits = 0;
  std::vector<RasCount> ras{};
  std::string performance_level = "auto";
  std::string runtime_status = "active";
  bool driver_bound = true;
  std::uint64_t uptime_ns = 3'600'000'000'000;  // gpu_metrics system_clock_counter
};

// Where a card sits. Ports are unused (all zero) where the model has no switch of its own.
struct CardPlace {
  PciAddress root_port{};
  PciAddress switch_up{};
  PciAddress switch_down{};
  PciAddress gpu{};
};

struct Card {
  CardModel model{};
  CardState state{};
  CardPlace place{};
  std::uint64_t unique_id = 0;
};

// The n-th slot of a synthetic machine (0..63): a root port of its own and three buses.
CardPlace slot_place(unsigned n, bool has_card_switch);
// A card at rest in slot n: cool, lowest clocks, full link, default cap.
Card idle_card(CardModel model, unsigned n);
// The same card under a steady load within its limits.
Card loaded_card(CardModel model, unsigned n);

}  // namespace gpuhealth::sim
