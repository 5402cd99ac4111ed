// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

constexpr std::size_t kNpdColumns = 80;

// What is plotted: the reading, its unit of measurement where the guidelines have one, and the card's own limit.
struct DataRow {
  ReadingId reading;
  std::string_view unit;
  ReadingId limit;
};
constexpr auto kData = std::to_array<DataRow>({
    {ReadingId::TemperatureEdge, "", ReadingId::TemperatureEdgeCritical},
    {ReadingId::TemperatureJunction, "", ReadingId::TemperatureJunctionCritical},
    {ReadingId::TemperatureMemory, "", ReadingId::TemperatureMemoryCritical},
    {ReadingId::PowerAverage, "", ReadingId::PowerCap},
    {ReadingId::PowerInput, "", ReadingId::PowerCap},
    {ReadingId::ClockGfx, "", ReadingId::ClockGfxMax},
    {ReadingId::UtilizationGfx, "%", ReadingId::PlainCount},
    {ReadingId::VramUsed, "B", ReadingId::VramTotal},
    {ReadingId::PcieReplays, "c", ReadingId::PlainCount},
});

// '|' begins performance data, a quote ends a label.
std::string plain(std::string_view text) {
  std::string out = clean(text);
  std::ranges::replace(out, '|', '/');
  std::ranges::replace(out, '\'', ' ');
  return out;
}

std::string decimal(double value) {
  std::string out = fmt::format("{:.3f}", value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

void add_data(PluginResult& out, const dbus::DeviceView& d) {
  for (const auto& row : kData) {
    const auto now = value(d, row.reading);
    if (!now || !std::isfinite(*now)) continue;
    std::string data =
        fmt::format("'{} {}'={}{}", plain(d.pci), find_reading(row.reading)->name, decimal(*now), row.unit);
    // A temperature has a critical threshold; of the others the limit is where the scale ends.
    const char* place = find_reading(row.reading)->name.starts_with("temperature.") ? ";;" : ";;;0;";
    if (row.limit != ReadingId::PlainCount) {
      if (const auto limit = value(d, row.limit)) data += place + decimal(*limit);
    }
    out.data.push_back(std::move(data));
  }
}

PluginState state_of(const Condition& c) {
  if (!needs_attention(c)) return PluginState::Ok;
  return c.severity == Severity::Critical ? PluginState::Critical : PluginState::Warning;
}

// Critical is worse than warning, and both than unknown.
int rank(PluginState state) {
  return state == PluginState::Ok ? 0 : state == PluginState::Unknown ? 1 : static_cast<int>(state) + 1;
}

void add_conditions(PluginResult& out, const Machine& machine, const std::string& device) {
  std::size_t count = 0;
  std::string first;
  for (const auto& c : worst_first(machine.conditions)) {
    if (!device.empty() && c.device != device) continue;
    const auto state = state_of(c);
    if (state == PluginState::Ok) continue;
    if (rank(state) > rank(out.state)) out.state = state;
    const std::string line =
        plain(std::string(info(c.type).title) + ": " + c.device_label + (c.detail.empty() ? "" : ": " + c.detail));
    if (count++ == 0) first = line;
    out.more.push_back(fmt::format("{}: {}", to_string(state), line));
  }
  if (count > 0) out.text = count == 1 ? first : fmt::format("{} (and {} more)", first, count - 1);
}

}  // namespace

std::string_view to_string(PluginState state) {
  static constexpr auto kNames = std::to_array<std::string_view>({"OK", "WARNING", "CRITICAL", "UNKNOWN"});
  return kNames.at(static_cast<std::size_t>(state));
}

PluginResult plugin_result(const Machine& machine, const std::string& device) {
  PluginResult out;
  out.state = PluginState::Ok;
  std::size_t seen = 0;
  std::size_t quiet = 0;
  for (const auto& d : machine.devices) {
    if (!device.empty() && d.id != device) continue;
    ++seen;
    quiet += silent(d) ? 1 : 0;
    add_data(out, d);
  }
  if (quiet > 0) {
    out.state = PluginState::Unknown;
    out.text = fmt::format("no fresh values from {} of {} GPUs", quiet, seen);
  }
  add_conditions(out, machine, device);
  if (out.state != PluginState::Ok) return out;
  if (seen == 0) {
    out.state = PluginState::Unknown;
    out.text = "no GPU found";
  } else {
    out.text = seen == 1 ? "the GPU is healthy" : fmt::format("all {} GPUs are healthy", seen);
  }
  return out;
}

std::string plugin_text(const PluginResult& result, PluginForm form) {
  if (form == PluginForm::Npd) return fit(result.text, kNpdColumns, false) + "\n";
  std::string out = fmt::format("GPU {} - {}", to_string(result.state), result.text);
  if (!result.data.empty()) out += fmt::format(" | {}", fmt::join(result.data, " "));
  out += "\n";
  if (result.more.size() > 1) {
    for (const auto& line : result.more) out += line + "\n";
  }
  return out;
}

int plugin_code(PluginState state, PluginForm form) {
  if (form == PluginForm::Nagios) return static_cast<int>(state);
  return state == PluginState::Ok ? 0 : state == PluginState::Unknown ? 2 : 1;
}

Json json_plugin(const PluginResult& result) {
  Json out;
  std::string state(to_string(result.state));
  std::ranges::transform(state, state.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  out["state"] = state;
  out["text"] = result.text;
  out["lines"] = result.more;
  out["data"] = result.data;
  return out;
}

}  // namespace gpuhealth::cli
