// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/numbers.hpp"
#include "cli/render.hpp"
#include "cli/text.hpp"

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

struct Row {
  const Group* group;
  std::string name;
  Span value;
  std::string_view text;
};

std::vector<Row> reading_rows(std::span<const Reading> readings) {
  std::vector<Row> rows;
  for (const Group& group : kGroups) {
    for (const Reading& reading : readings) {
      const ReadingInfo* row = find_reading(reading.id);
      if (row == nullptr || !row->name.starts_with(group.prefix)) continue;
      if (reading.status == ReadingStatus::Unsupported) continue;
      const bool odd = reading.status != ReadingStatus::Valid && reading.status != ReadingStatus::Asleep;
      rows.push_back({&group,
                      std::string(row->name.substr(group.prefix.size())),
                      {format_reading(reading), odd ? Tone::Warning : Tone::Plain},
                      row->text});
    }
  }
  return rows;
}

}  // namespace

void add_readings(Page& page, std::span<const Reading> readings, std::size_t indent) {
  constexpr std::size_t common = 8;  // columns of "2479 MHz"; a status in words may take more
  const auto rows = reading_rows(readings);
  std::size_t names = common + 2;
  for (const Row& row : rows) names = std::max(names, width(row.name));
  const Group* group = nullptr;
  for (const Row& row : rows) {
    if (row.group != group) page.line({Span(std::string(indent, ' ')), {row.group->title, Tone::Heading}});
    group = row.group;
    const std::size_t value_width = width(row.value.text);
    page.line({Span(std::string(indent + 2, ' ') + row.name + std::string(names - width(row.name), ' ')),
               Span(std::string(value_width < common ? common - value_width : 0, ' ')),
               row.value,
               {"  " + std::string(row.text)}});
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
             {device.health, severity                ? tone_of(*severity)
                             : device.health == "ok" ? Tone::Good
                                                     : Tone::Plain}});
  add_table(page, {{""}, {"", Align::Left, true}}, identity(device), terminal, 2);

  page.line({{"  "}, {"Slowed by", Tone::Heading}});
  if (!device.throttle_known) {
    page.line({{asleep(device) ? "    nothing, it is asleep" : "    not known; this part does not report reasons"}});
  } else if (device.throttle_reasons.empty()) {
    page.line({{"    nothing"}});
  } else {
    add_throttle_reasons(page, device.throttle_reasons, terminal, 4);
  }
  add_compute(page, device.compute_nodes, device.xgmi_peers, device.compute_partition, device.memory_partition,
              terminal, 2);
  add_readings(page, device.readings, 2);
  add_clients(page, device.clients, device.client_names, terminal, 2);

  if (!device.firmware.empty()) {
    page.line({{"  "}, {"Firmware", Tone::Heading}});
    std::vector<Line> rows;
    rows.reserve(device.firmware.size());
    for (const auto& [part, version] : device.firmware) rows.push_back({{part}, {version}});
    add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, 4);
  }
  if (to_microseconds(device.sampled) > 0)
    page.line({{"  read at " + format_time(device.sampled) + ", " + format_duration(now - device.sampled) + " ago"}});
  return page;
}

}  // namespace gpuhealth::cli
