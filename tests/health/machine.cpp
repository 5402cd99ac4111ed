// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <ostream>

namespace gpuhealth::health {

using R = ReadingId;

DeviceInfo navi31() {
  DeviceInfo device;
  device.pci = {0, 3, 0, 0};
  device.vendor_id = 0x1002;
  device.device_id = 0x744c;
  device.pci_class = 0x030000;
  device.driver = "amdgpu";
  device.unique_id = "49afc8b43a8a6d30";
  device.name = "Radeon RX 7900 XTX";
  device.family = AsicFamily::Navi3x;
  return device;
}

Sample idle_desktop() {
  Sample sample;
  sample.power = PowerState::Active;
  sample.throttle_known = true;
  sample.performance_level = "auto";
  for (const auto& [id, value] : std::initializer_list<std::pair<R, double>>{{R::TemperatureEdge, 42},
                                                                             {R::TemperatureJunction, 48},
                                                                             {R::TemperatureMemory, 52},
                                                                             {R::TemperatureEdgeCritical, 100},
                                                                             {R::TemperatureEdgeEmergency, 105},
                                                                             {R::TemperatureJunctionCritical, 110},
                                                                             {R::TemperatureJunctionEmergency, 115},
                                                                             {R::TemperatureMemoryCritical, 108},
                                                                             {R::TemperatureMemoryEmergency, 113},
                                                                             {R::PowerAverage, 22},
                                                                             {R::PowerCap, 303},
                                                                             {R::PowerCapDefault, 303},
                                                                             {R::ClockGfx, 31},
                                                                             {R::ClockMemory, 96},
                                                                             {R::ClockGfxMax, 2500},
                                                                             {R::ClockGfxMin, 500},
                                                                             {R::ClockMemoryMax, 1249},
                                                                             {R::ClockMemoryMin, 96},
                                                                             {R::FanRpm, 0},
                                                                             {R::VoltageGfx, 700},
                                                                             {R::UtilizationGfx, 2},
                                                                             {R::UtilizationMemory, 6},
                                                                             {R::VramTotal, 24.0 * (1u << 30)},
                                                                             {R::VramUsed, 1.2 * (1u << 30)},
                                                                             {R::GttTotal, 32.0 * (1u << 30)},
                                                                             {R::GttUsed, 0.15 * (1u << 30)},
                                                                             {R::PcieSpeed, 2.5},
                                                                             {R::PcieSpeedMax, 16},
                                                                             {R::PcieWidth, 16},
                                                                             {R::PcieWidthMax, 16},
                                                                             {R::PcieReplays, 0},
                                                                             {R::AerCorrectable, 0},
                                                                             {R::AerNonfatal, 0},
                                                                             {R::AerFatal, 0}})
    set(sample, id, value);
  return sample;
}

void set(Sample& sample, ReadingId id, double value) {
  const auto it = std::ranges::lower_bound(sample.readings, id, {}, &Reading::id);
  const Reading reading{id, ReadingStatus::Valid, 0, value};
  if (it != sample.readings.end() && it->id == id)
    *it = reading;
  else
    sample.readings.insert(it, reading);
}

void set_status(Sample& sample, ReadingId id, ReadingStatus status) {
  set(sample, id, 0);
  std::ranges::lower_bound(sample.readings, id, {}, &Reading::id)->status = status;
}

void put_under_load(Sample& sample) {
  for (const auto& [id, value] : std::initializer_list<std::pair<R, double>>{{R::TemperatureEdge, 65},
                                                                             {R::TemperatureJunction, 84},
                                                                             {R::TemperatureMemory, 80},
                                                                             {R::PowerAverage, 300},
                                                                             {R::ClockGfx, 2450},
                                                                             {R::ClockMemory, 1249},
                                                                             {R::FanRpm, 1800},
                                                                             {R::VoltageGfx, 1050},
                                                                             {R::UtilizationGfx, 98},
                                                                             {R::UtilizationMemory, 60},
                                                                             {R::PcieSpeed, 16},
                                                                             {R::PcieWidth, 16}})
    set(sample, id, value);
}

Machine::Machine(DeviceInfo device_info, Thresholds thresholds)
    : device(std::move(device_info)), engine(thresholds, "boot-now") {}

void Machine::look() {
  sample.device = device.id();
  sample.time = clock.now();
  take(engine.on_sample(device, sample));
}

void Machine::run(Duration time, Duration period, const std::function<void(Sample&)>& before_each) {
  for (Duration passed{}; passed < time; passed += period) {
    clock.advance(period);
    if (before_each) before_each(sample);
    look();
  }
}

void Machine::take(std::vector<Change> more) {
  changes.insert(changes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<Seen> Machine::seen() const {
  std::vector<Seen> out;
  for (const auto& change : changes) out.push_back({change.kind, change.condition.type});
  return out;
}

const Condition* Machine::open(ConditionType type) const {
  open_ = engine.open();
  const auto it = std::ranges::find(open_, type, &Condition::type);
  return it == open_.end() ? nullptr : &*it;
}

bool Machine::confirmed(ConditionType type) const {
  const auto* condition = open(type);
  return condition != nullptr && condition->state == ConditionState::Confirmed;
}

std::string evidence(const Condition& condition, const std::string& name) {
  const auto it = std::ranges::find(condition.evidence, name, &Evidence::name);
  return it == condition.evidence.end() ? "(none)" : it->value;
}

// For gtest's messages.
void PrintTo(const Seen& seen, std::ostream* out) {
  static constexpr std::array<std::string_view, 5> kinds = {"raised", "confirmed", "updated", "acknowledged",
                                                            "cleared"};
  *out << kinds.at(static_cast<std::size_t>(seen.kind)) << " " << info(seen.type).name;
}

}  // namespace gpuhealth::health
