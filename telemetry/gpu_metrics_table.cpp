// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_metrics_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpuhealth::telemetry {
namespace {

using enum FieldType;
#include "telemetry/gpu_metrics_layouts.inc"

struct StreamRow {
  MetricsFile file;
  unsigned format;
  unsigned content;
};
// amd-gfx, 2025-09-15, "helper functions for gpu metrics" v4.
constexpr StreamRow kStreams[] = {{MetricsFile::GpuMetrics, 1, 9}, {MetricsFile::Partition, 1, 1}};

constexpr KeyName kKeyNames[] = {
    {MetricsKey::ThrottleStatus, "throttle_status"},
    {MetricsKey::IndepThrottleStatus, "indep_throttle_status"},
    {MetricsKey::TemperatureEdge, "temperature_edge"},
    {MetricsKey::TemperatureHotspot, "temperature_hotspot"},
    {MetricsKey::TemperatureMem, "temperature_mem"},
    {MetricsKey::TemperatureVrGfx, "temperature_vrgfx"},
    {MetricsKey::TemperatureVrSoc, "temperature_vrsoc"},
    {MetricsKey::TemperatureVrMem, "temperature_vrmem"},
    {MetricsKey::TemperatureGfx, "temperature_gfx"},
    {MetricsKey::TemperatureSoc, "temperature_soc"},
    {MetricsKey::TemperatureSkin, "temperature_skin"},
    {MetricsKey::CurrentGfxclk, "current_gfxclk"},
    {MetricsKey::CurrentSocclk, "current_socclk"},
    {MetricsKey::CurrentUclk, "current_uclk"},
    {MetricsKey::CurrentFclk, "current_fclk"},
    {MetricsKey::AverageGfxclk, "average_gfxclk_frequency"},
    {MetricsKey::AverageSocclk, "average_socclk_frequency"},
    {MetricsKey::AverageUclk, "average_uclk_frequency"},
    {MetricsKey::AverageFclk, "average_fclk_frequency"},
    {MetricsKey::AverageGfxActivity, "average_gfx_activity"},
    {MetricsKey::AverageUmcActivity, "average_umc_activity"},
    {MetricsKey::AverageMmActivity, "average_mm_activity"},
    {MetricsKey::AverageMmActivity, "average_vcn_activity"},
    {MetricsKey::AverageSocketPower, "average_socket_power"},
    {MetricsKey::CurrSocketPower, "curr_socket_power"},
    {MetricsKey::CurrentFanSpeed, "current_fan_speed"},
    {MetricsKey::FanPwm, "fan_pwm"},
    {MetricsKey::VoltageSoc, "voltage_soc"},
    {MetricsKey::VoltageSoc, "average_soc_voltage"},
    {MetricsKey::VoltageGfx, "voltage_gfx"},
    {MetricsKey::VoltageGfx, "average_gfx_voltage"},
    {MetricsKey::VoltageMem, "voltage_mem"},
    {MetricsKey::PcieLinkWidth, "pcie_link_width"},
    {MetricsKey::PcieLinkSpeed, "pcie_link_speed"},
    {MetricsKey::PcieReplayCountAcc, "pcie_replay_count_acc"},
    {MetricsKey::AccumulationCounter, "accumulation_counter"},
    {MetricsKey::ProchotResidencyAcc, "prochot_residency_acc"},
    {MetricsKey::PptResidencyAcc, "ppt_residency_acc"},
    {MetricsKey::SocketThmResidencyAcc, "socket_thm_residency_acc"},
    {MetricsKey::VrThmResidencyAcc, "vr_thm_residency_acc"},
    {MetricsKey::HbmThmResidencyAcc, "hbm_thm_residency_acc"},
    {MetricsKey::ThrottleResidencyProchot, "throttle_residency_prochot"},
    {MetricsKey::ThrottleResidencySpl, "throttle_residency_spl"},
    {MetricsKey::ThrottleResidencyFppt, "throttle_residency_fppt"},
    {MetricsKey::ThrottleResidencySppt, "throttle_residency_sppt"},
    {MetricsKey::ThrottleResidencyThmCore, "throttle_residency_thm_core"},
    {MetricsKey::ThrottleResidencyThmGfx, "throttle_residency_thm_gfx"},
    {MetricsKey::ThrottleResidencyThmSoc, "throttle_residency_thm_soc"},
};

constexpr std::size_t kKeys = static_cast<std::size_t>(MetricsKey::Count);
constexpr std::size_t kLayoutCount = std::size(kLayouts);
using KeySlots = std::array<KeySlot, kKeys>;

constexpr KeySlot slot_of(const FieldRow& row) {
  const auto width = width_of(row.type);
  return {row.offset, static_cast<std::uint16_t>(row.offset + width * row.count), static_cast<std::uint8_t>(width)};
}

constexpr KeySlots slots_of(const Layout& layout) {
  KeySlots slots{};
  for (const auto& [key, name] : kKeyNames) {
    auto& slot = slots[static_cast<std::size_t>(key)];
    if (slot.width != 0) continue;
    for (const auto& part : layout.parts) {
      for (const auto& row : part) {
        if (row.name == name) slot = slot_of(row);
      }
    }
  }
  return slots;
}

template <std::size_t... I>
constexpr std::array<KeySlots, kLayoutCount> slots_of_all(std::index_sequence<I...> /*layouts*/) {
  return {slots_of(kLayouts[I])...};
}
constexpr auto kSlots = slots_of_all(std::make_index_sequence<kLayoutCount>{});

constexpr std::uint8_t kNoAttribute = 0xFF;
constexpr auto kKeyAttributes = [] {
  std::array<std::uint8_t, kKeys> out{};
  out.fill(kNoAttribute);
  for (const auto& [key, name] : kKeyNames) {
    for (std::size_t id = 0; id < std::size(kAttributes); ++id) {
      auto& slot = out[static_cast<std::size_t>(key)];
      if (kAttributes[id] == name && slot == kNoAttribute) slot = static_cast<std::uint8_t>(id);
    }
  }
  return out;
}();

}  // namespace

std::span<const Layout> all_layouts() {
  return kLayouts;
}

const Layout* find_layout(MetricsFile file, unsigned format, unsigned content) {
  const auto* at = std::ranges::find_if(kLayouts, [&](const Layout& layout) {
    return layout.file == file && layout.format == format && layout.content == content;
  });
  return at == std::end(kLayouts) ? nullptr : at;
}

const Layout* newest_layout(MetricsFile file, unsigned format) {
  const Layout* newest = nullptr;
  for (const auto& layout : kLayouts) {
    if (layout.file == file && layout.format == format) newest = &layout;
  }
  return newest;
}

bool is_stream(MetricsFile file, unsigned format, unsigned content) {
  return std::ranges::any_of(kStreams, [&](const StreamRow& row) {
    return row.file == file && row.format == format && row.content == content;
  });
}

bool is_newer_than_known(MetricsFile file, unsigned format, unsigned content) {
  const Layout* newest = newest_layout(file, format);
  if (newest == nullptr || content <= newest->content) return false;
  return std::ranges::none_of(kStreams, [&](const StreamRow& row) {
    return row.file == file && row.format == format && content <= row.content;
  });
}

std::optional<std::string_view> attribute_name(unsigned id) {
  if (id >= std::size(kAttributes)) return std::nullopt;
  return kAttributes[id];
}

KeySlot key_slot(const Layout& layout, MetricsKey key) {
  const auto index = static_cast<std::size_t>(&layout - kLayouts);
  return kSlots.at(index).at(static_cast<std::size_t>(key));
}

std::optional<unsigned> key_attribute(MetricsKey key) {
  const auto id = kKeyAttributes.at(static_cast<std::size_t>(key));
  if (id == kNoAttribute) return std::nullopt;
  return id;
}

std::span<const KeyName> all_key_names() {
  return kKeyNames;
}

std::uint64_t load_le(const std::uint8_t* at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = value << 8 | at[i];
  return value;
}

}  // namespace gpuhealth::telemetry
