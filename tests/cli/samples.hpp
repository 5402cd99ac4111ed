// SPDX-License-Identifier: Apache-2.0
// A made-up machine: a hot Radeon, a sleeping Radeon, a sound accelerator.
#pragma once

#include <string>
#include <vector>

#include "cli/machine.hpp"
#include "cli/page.hpp"
#include "telemetry/inspect.hpp"

namespace gpuhealth::cli::samples {

inline WallTime noon() {  // 2026-11-30 12:00:00 UTC
  return wall_from_microseconds(1'796'040'000'000'000);
}

inline Reading valid(ReadingId id, double value) {
  return {id, ReadingStatus::Valid, 0, value};
}

inline GpuClient client() {
  GpuClient c;
  c.pid = 4242;
  c.vram_bytes = 8ULL << 30U;
  c.engine_percent = 12;
  c.cpu_percent = 101;
  c.queues = true;
  return c;
}

inline dbus::DeviceView radeon() {
  dbus::DeviceView d;
  d.id = "uid-49afc8b43a8a6d30";
  d.pci = "0000:03:00.0";
  d.name = "AMD Radeon RX 7900 XTX";
  d.vendor_id = "0x1002";
  d.device_id = "0x744c";
  d.subsystem_id = "0x1da2:0xe471";
  d.driver = "amdgpu";
  d.unique_id = "49afc8b43a8a6d30";
  d.vbios_version = "113-APM6980-100";
  d.family = "Navi 3x";
  d.gfx = "gfx1100";
  d.runtime_status = "active";
  d.performance_level = "auto";
  d.power_profile = "BOOTUP_DEFAULT";
  d.health = "ok";
  d.firmware = {{"smc", "0x004e7e00"}};
  d.compute_nodes = {{1, 4711, 0, "gfx1100", 128, 96}};
  d.clients = {client()};
  d.client_names = {{4242, "python3"}};
  d.throttle_known = true;
  d.sampled = noon() - std::chrono::seconds(2);
  d.readings = {valid(ReadingId::TemperatureEdge, 45),
                valid(ReadingId::TemperatureJunction, 62),
                valid(ReadingId::PowerAverage, 287.4),
                valid(ReadingId::ClockGfx, 2479),
                valid(ReadingId::FanRpm, 0),
                {ReadingId::VoltageGfx, ReadingStatus::Unreadable, 5, 0},
                valid(ReadingId::UtilizationGfx, 98),
                valid(ReadingId::VramTotal, 25'753'026'560.0),
                valid(ReadingId::VramUsed, 1'288'490'188.0),
                valid(ReadingId::PcieSpeed, 16),
                valid(ReadingId::PcieWidth, 16),
                {ReadingId::PcieReplays, ReadingStatus::Unsupported, 0, 0}};
  return d;
}

inline dbus::DeviceView sleeping() {
  dbus::DeviceView d = radeon();
  d.id = "pci-0000:09:00.0-1002:67df-1da2:e387";
  d.pci = "0000:09:00.0";
  d.name = "Radeon RX 580 Series";
  d.unique_id.clear();
  d.runtime_status = "suspended";
  for (Reading& r : d.readings) r = {r.id, ReadingStatus::Asleep, 0, 0};
  return d;
}

inline dbus::DeviceView accelerator() {
  dbus::DeviceView d = radeon();
  d.id = "uid-0000000000000001";
  d.pci = "0000:c3:00.0";
  d.name = "AMD Instinct MI300X";
  return d;
}

inline Condition condition(ConditionType type, const dbus::DeviceView& device, std::string detail) {
  Condition c;
  c.type = type;
  c.severity = info(type).severity;
  c.state = ConditionState::Confirmed;
  c.device = device.id;
  c.device_label = label(device);
  c.since = noon() - std::chrono::minutes(3);
  c.last_seen = noon();
  c.boot_id = "0f2c7f0e-63b5-4a0e-9f5a-2f7e3f1f0001";
  c.detail = std::move(detail);
  c.evidence = {{"temperature.junction", "112 C"}, {"limit", "110 C"}};
  c.id = condition_id(type, c.device, c.since);
  return c;
}

inline Machine healthy() {
  Machine m;
  m.manager.version = "0.1.0";
  m.manager.boot_id = "0f2c7f0e-63b5-4a0e-9f5a-2f7e3f1f0001";
  m.manager.kernel_release = "6.12.57";
  m.manager.started = noon() - std::chrono::hours(5);
  m.manager.samples = 9000;
  m.devices = {radeon(), sleeping(), accelerator()};
  m.now = noon();
  return m;
}

inline Machine overheating() {
  Machine m = healthy();
  m.devices[0].health = "critical";
  m.devices[0].throttle_reasons = {"TEMP_HOTSPOT"};
  m.conditions = {
      condition(ConditionType::PcieDowngraded, m.devices[2], "The link runs with 8 of 16 lanes under load."),
      condition(ConditionType::Overheating, m.devices[0], "The junction is at 112 C; its limit is 110 C.")};
  return m;
}

inline telemetry::MetricsField field(std::string name, bool array, std::vector<std::optional<double>> values,
                                     std::vector<std::uint64_t> raw) {
  telemetry::MetricsField f;
  f.name = std::move(name);
  f.array = array;
  f.values = std::move(values);
  f.raw = std::move(raw);
  return f;
}

inline telemetry::GpuMetrics metrics() {
  telemetry::GpuMetrics m;
  m.format = 1;
  m.content = 3;
  m.structure_size = 120;
  m.status = telemetry::MetricsStatus::Truncated;
  m.note = "the file ends after 60 of 120 bytes";
  m.fields = {field("temperature_edge", false, {45.0}, {45}),
              field("system_clock_counter", false, {18446744073709551614.0}, {18446744073709551614ULL}),
              field("temperature_hbm", true, {std::nullopt, 51.0}, {0xFFFF, 51}),
              field("average_mm_activity", false, {std::nullopt}, {0xFFFF})};
  return m;
}

inline telemetry::Inspection inspection() {
  telemetry::Inspected second;
  second.device.pci = {0, 0x0b, 0, 0};
  second.device.vendor_id = 0x10de;
  second.device.device_id = 0x2684;
  telemetry::Inspected first;
  first.device.pci = {0, 3, 0, 0};
  first.device.vendor_id = 0x1002;
  first.device.device_id = 0x744c;
  first.device.subsystem_vendor = 0x1da2;
  first.device.subsystem_device = 0xe471;
  first.device.driver = "amdgpu";
  first.device.name = "Radeon RX 7900 XTX";
  first.device.firmware = {{"smc", "0x004e7e00"}};
  first.sample.power = PowerState::Active;
  first.sample.readings = {valid(ReadingId::TemperatureEdge, 45),
                           {ReadingId::PowerAverage, ReadingStatus::Unreadable, 5, 0},
                           valid(ras_reading(0, RasKind::Correctable), 7)};
  first.sample.throttle.insert(ThrottleReason::Ppt0);
  first.sample.throttle_gated.insert(ThrottleReason::TempHotspot);
  first.sources = {{"temperature.edge", "hwmon/hwmon3/temp1_input"}};
  first.metrics = metrics();
  first.runtime_status = "active";
  first.device.compute_nodes = {{1, 4711, 0, "gfx1100", 128, 96}, {2, 4712, 1, "gfx1100", 129, 96}};
  first.device.compute_partition = "DPX";
  first.device.memory_partition = "NPS1";
  first.device.xgmi_peers = {{0, 0x43, 0, 0}};
  first.clients = {{client(), "python3"}};
  telemetry::Inspection out;
  out.amdgpu = DriverModule{"", "9B3E1A0C5D7F", {{"runpm", "-1"}}};
  out.devices = {second, first};
  out.notes = {"one note"};
  return out;
}

inline Terminal screen(std::size_t columns = 80, std::size_t rows = 24) {
  return {true, false, true, columns, rows};
}
inline Terminal pipe() {
  return {};
}

}  // namespace gpuhealth::cli::samples
