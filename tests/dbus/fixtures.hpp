// SPDX-License-Identifier: Apache-2.0
// A made-up machine: one card and what may be wrong with it.
#pragma once

#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/sample.hpp"
#include "dbus/server.hpp"

namespace gpuhealth::test {

inline constexpr const char kCardId[] = "uid-49afc8b43a8a6d30";
inline constexpr const char kCardPath[] = "/org/gpuhealth1/device/uid_2d49afc8b43a8a6d30";
inline constexpr const char kHotId[] = "overheating-uid-49afc8b43a8a6d30-1764515000";
inline constexpr const char kHotPath[] = "/org/gpuhealth1/condition/overheating_2duid_2d49afc8b43a8a6d30_2d1764515000";

inline DeviceInfo card() {
  DeviceInfo d;
  d.pci = {0, 3, 0, 0};
  d.vendor_id = 0x1002;
  d.device_id = 0x744c;
  d.subsystem_vendor = 0x1da2;
  d.subsystem_device = 0xe471;
  d.driver = "amdgpu";
  d.unique_id = "49afc8b43a8a6d30";
  d.vbios_version = "113-EXT800241";
  d.name = "Radeon RX 7900 XTX";
  d.other_names = {"Radeon RX 7900 XT", "Radeon RX 7900M"};
  d.family = AsicFamily::Navi3x;
  d.gfx = "gfx1100";
  d.compute_nodes = {{1, 4711, 0, "gfx1100", 128, 96}};
  d.compute_partition = "SPX";
  d.memory_partition = "NPS1";
  d.xgmi_peers = {{0, 0x43, 0, 0}};
  d.firmware = {{"smc", "0x004e7e00"}, {"vcn", "0x0811f000"}};
  return d;
}

inline Sample sample(double edge = 45.0) {
  Sample s;
  s.device = kCardId;
  s.time = {wall_from_microseconds(1'764'515'000'250'000), {1'000'000}};
  s.power = PowerState::Active;
  s.readings = {{ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, edge},
                {ReadingId::PowerAverage, ReadingStatus::Unreadable, 16, 0},
                {ReadingId::FanRpm, ReadingStatus::Valid, 0, 0},
                {ras_reading(0, RasKind::Correctable), ReadingStatus::Valid, 0, 7}};
  s.throttle.insert(ThrottleReason::Ppt0);
  s.throttle_known = true;
  s.performance_level = "auto";
  s.power_profile = "BOOTUP_DEFAULT";
  return s;
}

inline Condition overheating() {
  Condition c;
  c.id = kHotId;
  c.type = ConditionType::Overheating;
  c.severity = Severity::Critical;
  c.state = ConditionState::Confirmed;
  c.device = kCardId;
  c.device_label = "Radeon RX 7900 XTX at 0000:03:00.0";
  c.since = wall_from_microseconds(1'764'515'000'250'000);
  c.last_seen = wall_from_microseconds(1'764'515'060'250'000);
  c.boot_id = "b00710ad-0000-4000-8000-000000000001";
  c.detail = "junction is at 112 C; its limit is 110 C";
  c.evidence = {{"temperature.junction", "112 C"}, {"limit", "110 C"}};
  return c;
}

inline constexpr const char kCapId[] = "000003-power-cap";
inline constexpr const char kCapPath[] = "/org/gpuhealth1/action/_3000003_2dpower_2dcap";

inline dbus::ActionView power_cap() {
  dbus::ActionView a;
  a.id = kCapId;
  a.kind = "power-cap";
  a.device = kCardId;
  a.device_label = "Radeon RX 7900 XTX at 0000:03:00.0";
  a.state = "applied";
  a.policy = "heat";
  a.rule = "thermal-wall";
  a.reason = "overheating: junction is at 112 C";
  a.text = "power-cap: 303 W -> 242 W";
  a.before = "303 W";
  a.wanted = "242 W";
  a.after = "242 W";
  a.fault = wall_from_microseconds(1'764'515'000'250'000);
  a.detected = wall_from_microseconds(1'764'515'070'250'000);
  a.acted = wall_from_microseconds(1'764'515'071'000'000);
  a.confirm_by = wall_from_microseconds(1'764'515'971'000'000);
  a.reversible = true;
  return a;
}

inline constexpr const char kRunPath[] = "/org/gpuhealth1/job/run1";

inline dbus::JobView running() {
  dbus::JobView j;
  j.id = "run1";
  j.device = kCardId;
  j.device_label = "Radeon RX 7900 XTX at 0000:03:00.0";
  j.tier = 1;
  j.state = "running";
  j.started = wall_from_microseconds(1'764'515'080'000'000);
  return j;
}

inline dbus::ManagerState manager_state() {
  dbus::ManagerState m;
  m.version = "0.1.0";
  m.boot_id = "b00710ad-0000-4000-8000-000000000001";
  m.kernel_release = "6.12.57-amd64";
  m.amdgpu = {"6.12.12", "9B3E1A0C5D7F", {{"runpm", "-1"}, {"ppfeaturemask", "0xfff7bfff"}}};
  m.started = wall_from_microseconds(1'764'514'000'000'000);
  m.samples = 42;
  m.policy_mode = "enforce";
  m.safe_mode = "/etc/gpuhealthd/observe is there";
  m.policy_problem = "50-a.yaml:3:1: there is no \"rulez\"";
  m.breaker_open = true;
  m.policy_files = {"/etc/gpuhealthd/policy.d/50-a.yaml"};
  return m;
}

}  // namespace gpuhealth::test
