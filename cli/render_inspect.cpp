// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/numbers.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

std::vector<std::string> names_in(ThrottleSet set) {
  std::vector<std::string> names;
  for (const ThrottleInfo& row : all_throttle_reasons()) {
    if (set.contains(row.reason)) names.emplace_back(row.name);
  }
  return names;
}

std::string subsystem(const DeviceInfo& d) {
  if (!d.subsystem_vendor || !d.subsystem_device) return "";
  return fmt::format(", board 0x{:04x}:0x{:04x}", *d.subsystem_vendor, *d.subsystem_device);
}

std::string metrics_line(const telemetry::GpuMetrics& m) {
  return fmt::format("revision {}.{}, {}", m.format, m.content,
                     m.note.empty() ? std::string(telemetry::to_string(m.status)) : m.note);
}

void add_device(Page& page, const telemetry::Inspected& one, std::span<const Condition> conditions,
                const Terminal& terminal) {
  const DeviceInfo& d = one.device;
  page.line({{d.name.empty() ? fmt::format("GPU {:04x}:{:04x}", d.vendor_id, d.device_id) : d.name, Tone::Heading},
             {" at " + to_string(d.pci)}});
  std::vector<Line> rows = {{{"ids"}, {fmt::format("0x{:04x}:0x{:04x}", d.vendor_id, d.device_id) + subsystem(d)}},
                            {{"driver"}, {d.driver.empty() ? "none is bound" : d.driver}},
                            {{"state"}, {to_string(one.sample.power)}}};
  if (d.other_names.size() > 1) rows.push_back({{"may be"}, {fmt::format("{}", fmt::join(d.other_names, ", "))}});
  if (!d.unique_id.empty()) rows.push_back({{"unique id"}, {d.unique_id}});
  if (!d.vbios_version.empty()) rows.push_back({{"VBIOS"}, {d.vbios_version}});
  if (one.metrics) rows.push_back({{"gpu_metrics"}, {metrics_line(*one.metrics)}});
  add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, 2);
  for (const Condition& c : conditions) {
    page.line({{"  "}, {to_string(c.severity), tone_of(c.severity)}, {"  " + std::string(info(c.type).title)}});
    if (!c.detail.empty()) page.paragraph(c.detail, 4, terminal.columns);
  }
  if (!one.sample.throttle.empty()) {
    page.line({{"  "}, {"Slowed by", Tone::Heading}});
    add_throttle_reasons(page, names_in(one.sample.throttle), terminal, 4);
  }
  if (!one.sample.throttle_gated.empty()) {
    page.line({{"  "}, {"Reported and not believed", Tone::Heading}});
    add_throttle_reasons(page, names_in(one.sample.throttle_gated), terminal, 4);
  }
  std::vector<std::string> peers;
  peers.reserve(d.xgmi_peers.size());
  for (const auto& peer : d.xgmi_peers) peers.push_back(to_string(peer));
  add_compute(page, d.compute_nodes, peers, d.compute_partition, d.memory_partition, terminal, 2);
  add_readings(page, one.sample.readings, 2);
  std::vector<GpuClient> clients;
  std::map<std::uint32_t, std::string> names;
  for (const auto& c : one.clients) {
    clients.push_back(c.client);
    if (!c.name.empty()) names[c.client.pid] = c.name;
  }
  add_clients(page, clients, names, terminal, 2);
}

}  // namespace

Page render_inspect(const telemetry::Inspection& inspection, std::span<const std::vector<Condition>> conditions,
                    const Terminal& terminal) {
  Page page;
  for (std::size_t i = 0; i < inspection.devices.size(); ++i) {
    if (i > 0) page.line();
    const std::span<const Condition> own = i < conditions.size() ? conditions[i] : std::span<const Condition>();
    add_device(page, inspection.devices[i], own, terminal);
  }
  if (inspection.devices.empty()) page.line({{"No GPU found."}});
  for (const std::string& text : inspection.notes) page.paragraph("note: " + text, 0, terminal.columns);
  return page;
}

}  // namespace gpuhealth::cli
