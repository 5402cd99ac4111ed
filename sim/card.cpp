// SPDX-License-Identifier: Apache-2.0
#include "sim/card.hpp"

#include <utility>

namespace gpuhealth::sim {
namespace {

unsigned lowest(const std::vector<unsigned>& levels) {
  return levels.empty() ? 0 : levels.front();
}
unsigned highest(const std::vector<unsigned>& levels) {
  return levels.empty() ? 0 : levels.back();
}

}  // namespace

CardPlace slot_place(unsigned n, bool has_card_switch) {
  const auto first_bus = static_cast<std::uint8_t>(1 + n * 3);
  CardPlace place;
  place.root_port = {0, 0, static_cast<std::uint8_t>(1 + n / 7), static_cast<std::uint8_t>(1 + n % 7)};
  if (has_card_switch) {
    place.switch_up = {0, first_bus, 0, 0};
    place.switch_down = {0, static_cast<std::uint8_t>(first_bus + 1), 0, 0};
    place.gpu = {0, static_cast<std::uint8_t>(first_bus + 2), 0, 0};
  } else {
    place.gpu = {0, first_bus, 0, 0};
  }
  return place;
}

Card idle_card(CardModel model, unsigned n) {
  Card card;
  card.place = slot_place(n, model.has_card_switch);
  card.unique_id = 0x5ee0'0000'0000'0001 + n;
  card.state.cap_w = model.cap_default_w;
  card.state.power_w = model.is_apu ? 4 : 18;
  card.state.gfx_mhz = lowest(model.gfx_levels_mhz);
  card.state.memory_mhz = lowest(model.memory_levels_mhz);
  card.state.soc_mhz = lowest(model.soc_levels_mhz);
  card.state.fabric_mhz = lowest(model.fabric_levels_mhz);
  card.state.vram_used = model.vram_bytes / 64;
  card.state.gtt_used = std::uint64_t{32} << 20;
  card.state.link = model.link_max;
  card.state.slot_max = model.link_max;
  card.model = std::move(model);
  return card;
}

Card loaded_card(CardModel model, unsigned n) {
  Card card = idle_card(std::move(model), n);
  const CardModel& m = card.model;
  card.state.edge_c = 62;
  card.state.junction_c = 78;
  card.state.memory_c = 74;
  card.state.power_w = m.has_power_cap ? m.cap_default_w * 0.86 : 28;
  card.state.gfx_mhz = highest(m.gfx_levels_mhz) - highest(m.gfx_levels_mhz) / 20;
  card.state.memory_mhz = highest(m.memory_levels_mhz);
  card.state.soc_mhz = highest(m.soc_levels_mhz);
  card.state.fabric_mhz = highest(m.fabric_levels_mhz);
  card.state.gfx_mv = 1010;
  card.state.fan_rpm = m.fan_max_rpm * 45 / 100;
  card.state.busy_percent = 98;
  card.state.memory_busy_percent = 41;
  card.state.vram_used = m.vram_bytes / 8 * 5;
  return card;
}

}  // namespace gpuhealth::sim
