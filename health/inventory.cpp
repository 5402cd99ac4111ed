// SPDX-License-Identifier: Apache-2.0
// What is told rather than measured: devices that are there, gone, or do not answer.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "health/engine_impl.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

// "pci-0000:03:00.0-1002:744c-1da2:e471" without the VBIOS version, which a flash changes; empty for other kinds of id.
std::string slot_and_ids(const std::string& id) {
  constexpr std::size_t shortest = std::string_view("pci-0000:00:00.0-0000:0000-0000:0000").size();
  if (!id.starts_with("pci-") || id.size() < shortest) return {};
  const auto address_end = id.find('-', 4);
  if (address_end == std::string::npos) return {};
  constexpr std::size_t ids = std::string_view("-0000:0000-0000:0000").size();
  return id.substr(0, address_end + ids);
}

// The same card under another id: its VBIOS was flashed, or no driver is bound and its unique id cannot be read.
bool is_same_card(const RememberedDevice& remembered, const DeviceInfo& device) {
  const auto id = device.id();
  if (id == remembered.id) return true;
  const auto stem = slot_and_ids(remembered.id);
  if (!stem.empty() && stem == slot_and_ids(id)) return true;
  return device.unique_id.empty() && device.serial.empty() &&
         remembered.label.ends_with(" at " + to_string(device.pci));
}

std::string_view vendor_name(std::uint16_t vendor) {
  switch (vendor) {
    case 0x1002:
      return "AMD GPU";
    case 0x10de:
      return "NVIDIA GPU";
    case 0x8086:
      return "Intel GPU";
    default:
      return "GPU";
  }
}

Verdict gone(const RememberedDevice& device, bool this_boot) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::Bad;
  verdict.severity = Severity::Critical;
  verdict.detail = device.label + (this_boot ? " was there earlier in this boot and is gone."
                                             : " was there at an earlier boot and is not there now.");
  verdict.evidence = {{"last seen in boot", device.last_boot_id}};
  return verdict;
}

}  // namespace

std::string label_of(const DeviceInfo& device) {
  const auto name = device.name.empty() ? fmt::format("{} {:04x}:{:04x}", vendor_name(device.vendor_id),
                                                      device.vendor_id, device.device_id)
                                        : device.name;
  return name + " at " + to_string(device.pci);
}

void Engine::Impl::state_fact(std::vector<Change>& out, ConditionType type, const std::string& device, Verdict verdict,
                              Now now) {
  auto& tracked = devices[device];
  Pace pace;
  pace.flap_window = seconds(thresholds.flap_window_s);
  pace.update_every = seconds(thresholds.update_every_s);
  verdict.kind = Verdict::Kind::Bad;
  if (auto change = tracked.life(type).see(verdict, {type, device, tracked.label, boot_id}, {now, Duration{}}, pace))
    out.push_back(std::move(*change));
}

void Engine::Impl::end(std::vector<Change>& out, ConditionType type, const std::string& device, Now now,
                       std::string_view reason, bool for_good) {
  const auto it = devices.find(device);
  if (it == devices.end()) return;
  if (auto change = it->second.life(type).end(now, reason, for_good)) out.push_back(std::move(*change));
}

void Engine::Impl::end_running(std::vector<Change>& out, Tracked& tracked, Now now, std::string_view reason) {
  for (const auto& row : all_conditions()) {
    if (row.type == ConditionType::GpuMissing) continue;
    if (auto change = tracked.life(row.type).end(now, reason, true)) out.push_back(std::move(*change));
  }
  tracked.forget_samples();
}

void Engine::Impl::end_earlier_names(std::vector<Change>& out, const std::string& id, const PciAddress& pci, Now now) {
  const auto place = " at " + to_string(pci);
  for (auto& [other, tracked] : devices)
    if (other != id && tracked.label.ends_with(place)) end_running(out, tracked, now, "the GPU has another id now");
}

std::vector<Change> Engine::on_inventory(std::span<const DeviceInfo> present,
                                         std::span<const RememberedDevice> remembered, Now now) {
  std::vector<Change> out;
  std::set<std::string> there;
  for (const auto& device : present) there.insert(device.id());
  std::set<std::string> known;
  for (const auto& device : remembered) {
    known.insert(device.id);
    if (device.id.empty() || there.contains(device.id)) continue;
    if (std::ranges::any_of(present, [&](const DeviceInfo& d) { return is_same_card(device, d); })) {
      impl_->end(out, ConditionType::GpuMissing, device.id, now, "the GPU is back", true);
      continue;
    }
    auto& tracked = impl_->devices[device.id];
    tracked.label = device.label;
    if (tracked.life(ConditionType::GpuMissing).open() != nullptr) continue;  // said already, perhaps acknowledged
    impl_->state_fact(out, ConditionType::GpuMissing, device.id, gone(device, device.last_boot_id == impl_->boot_id),
                      now);
  }
  for (auto& [id, tracked] : impl_->devices) {
    if (there.contains(id)) {
      impl_->end(out, ConditionType::GpuMissing, id, now, "the GPU is back", true);
      continue;
    }
    impl_->end_running(out, tracked, now, "the GPU is gone");
    const auto* missing = tracked.life(ConditionType::GpuMissing).open();
    if (missing != nullptr && missing->acknowledged && !known.contains(id))
      impl_->end(out, ConditionType::GpuMissing, id, now, "the GPU was taken out for good", true);
  }
  return out;
}

std::vector<Change> Engine::on_removed(const std::string& device, const std::string& label, bool expected, Now now) {
  std::vector<Change> out;
  if (device.empty()) return out;
  auto& tracked = impl_->devices[device];
  if (!label.empty()) tracked.label = label;
  impl_->end_running(out, tracked, now, "the GPU was removed");
  if (expected) return out;
  Verdict verdict;
  verdict.severity = Severity::Critical;
  verdict.detail = (tracked.label.empty() ? device : tracked.label) + " vanished while the machine was running.";
  verdict.evidence = {{"last seen in boot", impl_->boot_id}};
  impl_->state_fact(out, ConditionType::GpuMissing, device, std::move(verdict), now);
  return out;
}

std::vector<Change> Engine::on_stuck(const DeviceInfo& device, bool stuck, const std::string& what, Now now) {
  std::vector<Change> out;
  const auto id = device.id();
  impl_->devices[id].label = label_of(device);
  if (!stuck) {
    impl_->end(out, ConditionType::SourceStuck, id, now, "reads return again", false);
    return out;
  }
  Verdict verdict;
  verdict.severity = Severity::Critical;
  verdict.detail = "A read of " + (what.empty() ? std::string("its sensors") : what) + " does not return.";
  verdict.evidence = {{"stuck in", what}};
  impl_->state_fact(out, ConditionType::SourceStuck, id, std::move(verdict), now);
  return out;
}

std::vector<Change> Engine::on_verdict(const DeviceInfo& device, ConditionType type, bool holds, Severity severity,
                                       const std::string& detail, std::vector<Evidence> evidence, Now now) {
  std::vector<Change> out;
  const auto id = device.id();
  impl_->devices[id].label = label_of(device);
  if (!holds) {
    impl_->end(out, type, id, now, "measured again: it is over", false);
    return out;
  }
  Verdict verdict;
  verdict.severity = severity;
  verdict.detail = detail;
  verdict.evidence = std::move(evidence);
  impl_->state_fact(out, type, id, std::move(verdict), now);
  return out;
}

}  // namespace gpuhealth::health
