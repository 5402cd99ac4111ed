// SPDX-License-Identifier: Apache-2.0
#include "sim/state_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace gpuhealth::sim {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kManyErrors = 1e15;

// A member of the state, whatever number it is, in `Scale` of its own units.
template <auto Member, auto... More>
constexpr auto& at(auto& state) {
  if constexpr (sizeof...(More) == 0) {
    return state.*Member;
  } else {
    return at<More...>(state.*Member);
  }
}

template <auto... Path>
constexpr StateField field(std::string_view name, std::string_view unit, double low, double high) {
  return {name,
          unit,
          low,
          high,
          [](CardState& state, double value) {
            auto& to = at<Path...>(state);
            using Number = std::remove_reference_t<decltype(to)>;
            to = static_cast<Number>(std::is_integral_v<Number> ? std::round(value) : value);
          },
          [](const CardState& state) { return static_cast<double>(at<Path...>(state)); }};
}

template <auto Member>
constexpr StateField gib(std::string_view name) {
  return {
      name,
      "GiB",
      0,
      4096,
      [](CardState& state, double value) { state.*Member = static_cast<std::uint64_t>(std::llround(value * kGiB)); },
      [](const CardState& state) { return static_cast<double>(state.*Member) / kGiB; }};
}

constexpr auto kFields = std::to_array<StateField>({
    field<&CardState::edge_c>("edge", "C", -40, 200),
    field<&CardState::junction_c>("junction", "C", -40, 200),
    field<&CardState::memory_c>("memory_temperature", "C", -40, 200),
    field<&CardState::power_w>("power", "W", 0, 2000),
    field<&CardState::cap_w>("cap", "W", 0, 2000),
    field<&CardState::gfx_mhz>("gfx_clock", "MHz", 0, 5000),
    field<&CardState::memory_mhz>("memory_clock", "MHz", 0, 5000),
    field<&CardState::soc_mhz>("soc_clock", "MHz", 0, 5000),
    field<&CardState::fabric_mhz>("fabric_clock", "MHz", 0, 5000),
    field<&CardState::gfx_mv>("gfx_voltage", "mV", 0, 2000),
    field<&CardState::fan_rpm>("fan", "rpm", 0, 20000),
    field<&CardState::busy_percent>("busy", "%", 0, 100),
    field<&CardState::memory_busy_percent>("memory_busy", "%", 0, 100),
    gib<&CardState::vram_used>("vram_used"),
    gib<&CardState::gtt_used>("gtt_used"),
    field<&CardState::vram_losses>("vram_losses", "count", 0, kManyErrors),
    field<&CardState::link, &Link::speed_gts>("link_speed", "GT/s", 0, 64),
    field<&CardState::link, &Link::width>("link_width", "lanes", 0, 32),
    field<&CardState::slot_max, &Link::speed_gts>("slot_speed_max", "GT/s", 0, 64),
    field<&CardState::slot_max, &Link::width>("slot_width_max", "lanes", 0, 32),
    field<&CardState::replays>("replays", "count", 0, kManyErrors),
    field<&CardState::aer, &AerCounts::receiver_errors>("aer_receiver_errors", "count", 0, kManyErrors),
    field<&CardState::aer, &AerCounts::bad_tlp>("aer_bad_tlp", "count", 0, kManyErrors),
    field<&CardState::aer, &AerCounts::nonfatal>("aer_nonfatal", "count", 0, kManyErrors),
    field<&CardState::aer, &AerCounts::fatal>("aer_fatal", "count", 0, kManyErrors),
    field<&CardState::slot_aer, &AerCounts::receiver_errors>("slot_aer_receiver_errors", "count", 0, kManyErrors),
    field<&CardState::slot_aer, &AerCounts::bad_tlp>("slot_aer_bad_tlp", "count", 0, kManyErrors),
    field<&CardState::slot_aer, &AerCounts::nonfatal>("slot_aer_nonfatal", "count", 0, kManyErrors),
    field<&CardState::throttle_bits>("throttle_bits", "bits", 0, 4294967295.0),
    field<&CardState::indep_throttle_bits>("indep_throttle_bits", "bits", 0, 1.8e19),
});

}  // namespace

std::span<const StateField> all_state_fields() {
  return kFields;
}

const StateField* find_state_field(std::string_view name) {
  const auto it = std::ranges::find(kFields, name, &StateField::name);
  return it == kFields.end() ? nullptr : &*it;
}

}  // namespace gpuhealth::sim
