// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/json.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

// What a field's name says of its unit (kgd_pp_interface.h). Format 1 tables count in whole degrees and watts, APU
// tables (2 and 3) in hundredths and milliwatts. First match wins; a unit that depends on the ASIC is left out.
struct UnitRule {
  std::string_view part;
  std::string_view dgpu;
  std::string_view apu;
};
constexpr std::array<UnitRule, 31> kUnits = {{
    {"structure_size", "bytes", "bytes"},
    {"temperature", "C", "0.01 C"},
    {"socket_power", "W", ""},  // watts on Renoir, milliwatts on later APUs
    {"power", "W", "mW"},
    {"_acc", "", ""},
    {"throttle_status", "bits", "bits"},
    {"throttle_residency", "count", "count"},
    {"lock_status", "bits", "bits"},
    {"activity", "%", ""},  // hundredths in the tables of some APUs
    {"busy", "%", "%"},
    {"energy", "", ""},  // 15.259 uJ or another step, by ASIC
    {"system_clock_counter", "ns", "ns"},
    {"firmware_timestamp", "10 ns", "10 ns"},
    {"accumulation_counter", "samples", "samples"},
    {"frequency", "MHz", "MHz"},
    {"maxfreq", "MHz", "MHz"},
    {"current_fan_speed", "rpm", "rpm"},
    {"fan_pwm", "PWM", "PWM"},
    {"voltage", "mV", "mV"},
    {"_current", "mA", "mA"},
    {"pcie_link_width", "lanes", "lanes"},
    {"pcie_link_speed", "0.1 GT/s", "0.1 GT/s"},
    {"xgmi_link_width", "lanes", "lanes"},
    {"xgmi_link_speed", "Gbit/s", "Gbit/s"},
    {"bandwidth", "GB/s", "GB/s"},
    {"dram_", "MB/s", "MB/s"},
    {"ipu_reads", "MB/s", "MB/s"},
    {"ipu_writes", "MB/s", "MB/s"},
    {"time_filter", "us", "us"},
    {"clk", "MHz", "MHz"},
    {"_temp", "id, C", "id, C"},
}};

std::string_view unit_of(std::string_view name, unsigned format) {
  for (const UnitRule& rule : kUnits) {
    if (name.find(rule.part) != std::string_view::npos) return format >= 2 ? rule.apu : rule.dgpu;
  }
  return "";
}

std::string value_of(const telemetry::MetricsField& field) {
  std::string out;
  for (std::size_t i = 0; i < field.values.size(); ++i) {
    if (i > 0) out += ' ';
    const Json number = metrics_number(field, i);
    out += number.is_null() ? "-" : number.dump();
  }
  return out.empty() ? "-" : out;
}

}  // namespace

Page render_metrics(const telemetry::GpuMetrics& metrics, const Terminal& terminal) {
  Page page;
  const bool sound = metrics.status == telemetry::MetricsStatus::Ok;
  page.line(
      {{fmt::format("revision {}.{}, {} bytes stated: ", metrics.format, metrics.content, metrics.structure_size)},
       {telemetry::to_string(metrics.status), sound ? Tone::Good : Tone::Warning}});
  if (!metrics.note.empty()) page.paragraph(metrics.note, 0, terminal.columns);
  std::vector<Line> rows;
  for (const auto& field : metrics.fields) {
    if (field.name.starts_with("padding")) continue;
    rows.push_back({{field.name}, {value_of(field)}, {unit_of(field.name, metrics.format)}});
  }
  if (rows.empty()) return page;
  page.line();
  add_table(page, {{"field"}, {"value", Align::Left, true}, {"unit"}}, rows, terminal);
  page.line({{"- means that this part does not fill the field"}});
  return page;
}

}  // namespace gpuhealth::cli
