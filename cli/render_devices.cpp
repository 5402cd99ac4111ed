// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "cli/numbers.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

struct Group {
  std::string_view prefix;
  std::string_view title;
};
constexpr std::array<Group, 12> kGroups = {{{"temperature.", "Temperature"},
                                            {"power.", "Power"},
                                            {"clock.", "Clock"},
                                            {"fan.", "Fan"},
                                            {"voltage.", "Voltage"},
                                            {"utilization.", "Busy"},
                                            {"vram.", "Video memory"},
                                            {"gtt.", "System memory for the GPU"},
                                            {"pcie.", "PCIe link"},
                                            {"aer.", "PCIe errors"},
                                            {"throttle.", "Throttled share of time"},
                                            {"ras.", "Memory and logic errors (RAS)"}}};

void add_fact(std::vector<Line>& rows, std::string_view name, const std::string& text) {
  if (!text.empty()) rows.push_back({{name}, {text}});
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<Line> identity(const dbus::DeviceView& d) {
  std::vector<Line> rows;
  add_fact(rows, "PCI address", d.pci);
  add_fact(rows, "ids", d.vendor_id + ":" + d.device_id + (d.subsystem_id.empty() ? "" : ", board " + d.subsystem_id));
  if (d.other_names.size() > 1) add_fact(rows, "may be", joined(d.other_names));
  add_fact(rows, "generation", d.family + (d.gfx.empty() ? "" : ", " + d.gfx));
  add_fact(rows, "driver", d.driver.empty() ? "none is bound" : d.driver);
  add_fact(rows, "unique id", d.unique_id);
  add_fact(rows, "VBIOS", d.vbios_version);
  add_fact(rows, "state", asleep(d) ? "asleep; it is not woken to be looked at" : d.runtime_status);
  add_fact(rows, "performance level", d.performance_level);
  add_fact(rows, "power profile", d.power_profile);
  add_fact(rows, "key", d.id);
  return rows;
}

Line reading_row(const Reading& reading, const ReadingInfo& row, std::size_t prefix) {
  const bool odd = reading.status != ReadingStatus::Valid && reading.status != ReadingStatus::Asleep;
  return {{row.name.substr(prefix)}, {format_reading(reading), odd ? Tone::Warning : Tone::Plain}, {row.text}};
}

}  // namespace

void add_readings(Page& page, std::span<const Reading> readings, const Terminal& terminal, std::size_t indent) {
  for (const Group& group : kGroups) {
    std::vector<Line> rows;
    for (const Reading& reading : readings) {
      const ReadingInfo* row = find_reading(reading.id);
      if (row == nullptr || !row->name.starts_with(group.prefix)) continue;
      if (reading.status == ReadingStatus::Unsupported) continue;
      rows.push_back(reading_row(reading, *row, group.prefix.size()));
    }
    if (rows.empty()) continue;
    page.line({Span(std::string(indent, ' ')), {group.title, Tone::Heading}});
    add_table(page, {{""}, {"", Align::Right}, {"", Align::Left, true}}, rows, terminal, indent + 2);
  }
}

void add_throttle_reasons(Page& page, std::span<const std::string> names, const Terminal& terminal,
                          std::size_t indent) {
  std::vector<Line> rows;
  for (const std::string& name : names) {
    const auto reason = throttle_reason_from(name);
    rows.push_back({{name}, {reason ? all_throttle_reasons()[static_cast<std::size_t>(*reason)].text : ""}});
  }
  add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, indent);
}

Page render_device(const dbus::DeviceView& device, WallTime now, const Terminal& terminal) {
  Page page;
  const auto severity = severity_from(device.health);
  page.line({{display_name(device), Tone::Heading},
             {"  "},
             {device.health, severity ? tone_of(*severity) : device.health == "ok" ? Tone::Good : Tone::Plain}});
  add_table(page, {{""}, {"", Align::Left, true}}, identity(device), terminal, 2);

  page.line({{"  "}, {"Slowed by", Tone::Heading}});
  if (!device.throttle_known) {
    page.line({{asleep(device) ? "    nothing, it is asleep" : "    not known; this part does not report reasons"}});
  } else if (device.throttle_reasons.empty()) {
    page.line({{"    nothing"}});
  } else {
    add_throttle_reasons(page, device.throttle_reasons, terminal, 4);
  }
  add_readings(page, device.readings, terminal, 2);

  if (!device.firmware.empty()) {
    page.line({{"  "}, {"Firmware", Tone::Heading}});
    std::vector<Line> rows;
    for (const auto& [part, version] : device.firmware) rows.push_back({{part}, {version}});
    add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, 4);
  }
  if (to_microseconds(device.sampled) > 0)
    page.line({{"  read at " + format_time(device.sampled) + ", " + format_duration(now - device.sampled) + " ago"}});
  return page;
}

}  // namespace gpuhealth::cli
