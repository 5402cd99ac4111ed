// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/numbers.hpp"
#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

using Ids = std::array<ReadingId, 4>;
struct Metric {
  std::string_view name;
  Ids ids;            // the first that has a value
  double least_span;  // below it, a change is the sensor's noise
};

constexpr std::array<Metric, Trails::kMetrics> kMetrics = {{
    {"temp",
     {ReadingId::TemperatureJunction, ReadingId::TemperatureEdge, ReadingId::TemperatureGfx, ReadingId::TemperatureSoc},
     4},
    {"power", {ReadingId::PowerAverage, ReadingId::PowerInput, ReadingId::PowerInput, ReadingId::PowerInput}, 5},
    {"clock", {ReadingId::ClockGfx, ReadingId::ClockGfx, ReadingId::ClockGfx, ReadingId::ClockGfx}, 100},
    {"link", {ReadingId::PcieSpeed, ReadingId::PcieSpeed, ReadingId::PcieSpeed, ReadingId::PcieSpeed}, 1},
}};
constexpr std::size_t kLink = 3;
constexpr std::size_t kLeastCell = 38;  // two of them in 80 columns
constexpr std::size_t kNameWidth = 6;
constexpr std::size_t kValueWidth = 10;

std::optional<double> value_of(const dbus::DeviceView& device, const Metric& metric, ReadingId* which = nullptr) {
  for (const ReadingId id : metric.ids) {
    const auto v = value(device, id);
    if (!v) continue;
    if (which != nullptr) *which = id;
    return v;
  }
  return std::nullopt;
}

std::string value_text(const dbus::DeviceView& device, std::size_t metric) {
  ReadingId id{};
  const auto v = value_of(device, kMetrics.at(metric), &id);
  if (metric != kLink) return v ? format_value(std::round(*v), find_reading(id)->unit) : "-";
  const auto lanes = value(device, ReadingId::PcieWidth);
  std::string out = lanes ? format_value(*lanes, Unit::Lane) : "";
  if (v) out += (out.empty() ? "" : " ") + format_link_speed(*v);
  return out.empty() ? "-" : out;
}

std::string padded(std::string_view text, std::size_t columns, bool left) {
  const std::string space(columns - std::min(columns, width(text)), ' ');
  return left ? std::string(text) + space : space + std::string(text);
}

Tone tone_of_health(std::string_view health) {
  if (const auto severity = severity_from(health)) return tone_of(*severity);
  return health == "ok" ? Tone::Good : Tone::Plain;
}

std::string cell(const dbus::DeviceView& device, const Trails& trails, std::size_t metric, std::size_t columns,
                 bool utf8) {
  const Metric& m = kMetrics.at(metric);
  std::string out =
      padded(std::string(m.name), kNameWidth, true) + padded(value_text(device, metric), kValueWidth, false) + " ";
  const std::size_t taken = width(out);
  if (columns > taken) out += sparkline(trails.of(device.id, metric), columns - taken, m.least_span, utf8);
  return padded(out, columns, true);
}

void add_gpu(Page& page, const dbus::DeviceView& d, const Trails& trails, const Terminal& terminal) {
  const std::string state = asleep(d) ? d.health + ", asleep" : d.health;
  const std::size_t around = width(d.pci) + width(state) + 4;
  const std::size_t columns = std::max<std::size_t>(terminal.columns, 20);
  const std::string name = fit(clean(display_name(d)), columns > around + 8 ? columns - around : 8, terminal.utf8);
  Line head = {{name, Tone::Heading}, {"  " + d.pci + "  "}, {state, tone_of_health(d.health)}};
  page.line(std::move(head));
  if (asleep(d)) return;
  const std::size_t per_line = std::clamp<std::size_t>((columns - 2) / kLeastCell, 1, kMetrics.size());
  const std::size_t room = (columns - 2) / per_line - 1;
  for (std::size_t i = 0; i < kMetrics.size(); i += per_line) {
    std::string text = " ";
    for (std::size_t k = i; k < std::min(i + per_line, kMetrics.size()); ++k)
      text += " " + cell(d, trails, k, room, terminal.utf8);
    page.line({{text}});
  }
  if (!d.throttle_reasons.empty())
    page.paragraph({fmt::format("slowed: {}", fmt::join(d.throttle_reasons, ", "))}, 2, columns);
}

void add_conditions(Page& page, const Machine& machine, const Terminal& terminal) {
  const auto conditions = worst_first(machine.conditions);
  for (const Condition& c : conditions) {
    const char* mark = c.acknowledged ? "known" : c.state == ConditionState::Raised ? "seen" : nullptr;
    const std::string tag = padded(mark != nullptr ? mark : std::string(to_string(c.severity)), 10, true);
    const Tone tone = needs_attention(c) ? tone_of(c.severity) : Tone::Plain;
    const auto title = wrap(info(c.type).title, std::max<std::size_t>(terminal.columns, 30) - 10);
    for (std::size_t i = 0; i < title.size(); ++i) page.line({{i == 0 ? tag : std::string(10, ' '), tone}, {title[i]}});
    page.paragraph({c.device_label + ", " + format_since(c.since, machine.now)}, 10, terminal.columns);
  }
  if (!conditions.empty()) page.line();
}

void add_actions(Page& page, const Machine& machine, const Terminal& terminal) {
  constexpr std::size_t kLast = 5;
  if (machine.actions.empty()) return;
  page.line({{"Last actions", Tone::Heading}});
  std::size_t count = 0;
  for (auto a = machine.actions.rbegin(); a != machine.actions.rend() && count < kLast; ++a, ++count) {
    const WallTime when = to_microseconds(a->acted) > 0 ? a->acted : a->detected;
    std::string text = format_time_short(when, machine.now) + "  " + a->kind + ": " + a->state;
    if (!a->device_label.empty()) text += " on " + a->device_label;
    if (!a->before.empty()) text += ", " + a->before + " -> " + (a->after.empty() ? a->wanted : a->after);
    page.paragraph({text}, 2, terminal.columns);
  }
  page.line();
}

}  // namespace

std::string sparkline(std::span<const std::optional<double>> values, std::size_t columns, double least_span,
                      bool utf8) {
  constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 8> kAscii = {"_", ".", ",", "-", "=", "+", "*", "#"};
  const auto seen = values.last(std::min(values.size(), columns));
  std::optional<double> low;
  std::optional<double> high;
  for (const auto& v : seen) {
    if (!v || !std::isfinite(*v)) continue;
    low = std::min(low.value_or(*v), *v);
    high = std::max(high.value_or(*v), *v);
  }
  std::string out(columns - seen.size(), ' ');
  for (const auto& v : seen) {
    if (!v || !std::isfinite(*v)) {
      out += ' ';
      continue;
    }
    const double span = *high - *low;
    const double share = span < least_span || span <= 0 ? 0 : (*v - *low) / span;
    const auto step = std::min<std::size_t>(static_cast<std::size_t>(share * 8), 7);
    out += utf8 ? kBlocks.at(step) : kAscii.at(step);
  }
  return out;
}

void Trails::note(const Machine& machine) {
  std::map<std::string, std::vector<Trail>> kept;
  for (const auto& device : machine.devices) {
    auto& trails = kept[device.id];
    if (const auto old = trails_.find(device.id); old != trails_.end()) trails = std::move(old->second);
    trails.resize(kMetrics);
    for (std::size_t i = 0; i < kMetrics; ++i) {
      if (trails[i].size() == kMost) trails[i].erase(trails[i].begin());
      trails[i].push_back(value_of(device, gpuhealth::cli::kMetrics.at(i)));
    }
  }
  trails_ = std::move(kept);
}

std::span<const std::optional<double>> Trails::of(const std::string& device, std::size_t metric) const {
  const auto found = trails_.find(device);
  if (found == trails_.end()) return {};
  return found->second.at(metric);
}

Page render_watch(const Machine& machine, const Trails& trails, const Terminal& terminal) {
  Page page;
  page.line({{summary(machine), needs_attention(machine) ? Tone::Heading : Tone::Plain}});
  page.line();
  add_conditions(page, machine, terminal);
  for (const auto& device : machine.devices) add_gpu(page, device, trails, terminal);
  if (!machine.devices.empty()) page.line();
  add_actions(page, machine, terminal);
  const auto& m = machine.manager;
  const auto warn = [&](std::string_view what, const std::string& why) {
    if (!why.empty()) page.paragraph({std::string(what) + why, Tone::Warning}, 0, terminal.columns);
  };
  warn("Safe mode, nothing is changed: ", m.safe_mode);
  warn("Policies not loaded, the last good ones stay: ", m.policy_problem);
  warn("Configuration not loaded, the last good one stays: ", m.config_problem);
  warn("History does not work: ", m.store_problem);
  return page;
}

Page render_watch_help() {
  Page page;
  page.line({{"Keys", Tone::Heading}});
  for (const char* text :
       {"up, down, k, j      one line", "PgUp, PgDn, b, space  one screen", "Home, End, g, G     first, last line",
        "?                   this help, and back", "Ctrl-L              draw anew",
        "Ctrl-Z              to the shell; fg comes back", "q, Ctrl-C           leave"})
    page.line({{"  "}, {text}});
  page.line();
  page.line({{"Curves run from the start of watch, the"}});
  page.line({{"newest on the right, each between its"}});
  page.line({{"own least and greatest value."}});
  return page;
}

std::vector<Key> take_keys(std::string& typed) {
  struct Row {
    std::string_view bytes;
    Key key;
  };
  // Both forms that terminals send, of normal and of application mode.
  constexpr auto kRows = std::to_array<Row>({
      {"\x1b[A", Key::Up},      {"\x1bOA", Key::Up},        {"\x1b[B", Key::Down},   {"\x1bOB", Key::Down},
      {"\x1b[5~", Key::PageUp}, {"\x1b[6~", Key::PageDown}, {"\x1b[H", Key::Top},    {"\x1bOH", Key::Top},
      {"\x1b[1~", Key::Top},    {"\x1b[7~", Key::Top},      {"\x1b[F", Key::Bottom}, {"\x1bOF", Key::Bottom},
      {"\x1b[4~", Key::Bottom}, {"\x1b[8~", Key::Bottom},   {"q", Key::Quit},        {"Q", Key::Quit},
      {"\x03", Key::Quit},      {"\x04", Key::Quit},        {"?", Key::Help},        {"h", Key::Help},
      {"k", Key::Up},           {"j", Key::Down},           {"b", Key::PageUp},      {" ", Key::PageDown},
      {"g", Key::Top},          {"G", Key::Bottom},         {"\x0c", Key::Redraw},
  });
  std::vector<Key> keys;
  std::string_view left = typed;
  while (!left.empty()) {
    const auto row = std::ranges::find_if(kRows, [&](const Row& r) { return left.starts_with(r.bytes); });
    if (row != kRows.end()) {
      keys.push_back(row->key);
      left.remove_prefix(row->bytes.size());
      continue;
    }
    if (std::ranges::any_of(kRows, [&](const Row& r) { return r.bytes.starts_with(left); })) break;
    // A sequence that means nothing here ends at its letter: its tail is not typed text.
    std::size_t length = 1;
    if (left.starts_with("\x1b[")) {
      length = 2;
      while (length < left.size() && left[length] < '@') ++length;
      length = std::min(length + 1, left.size());
    }
    left.remove_prefix(length);
  }
  typed = std::string(left);
  return keys;
}

bool Scroll::move(Key key, std::size_t lines, std::size_t rows) {
  const std::size_t page = std::max<std::size_t>(rows, 2) - 1;  // one line stays, for the eye
  switch (key) {
    case Key::Up:
      first -= std::min<std::size_t>(first, 1);
      break;
    case Key::Down:
      first += 1;
      break;
    case Key::PageUp:
      first -= std::min(first, page);
      break;
    case Key::PageDown:
      first += page;
      break;
    case Key::Top:
      first = 0;
      break;
    case Key::Bottom:
      first = lines;
      break;
    default:
      return false;
  }
  keep_within(lines, rows);
  return true;
}

void Scroll::keep_within(std::size_t lines, std::size_t rows) {
  first = std::min(first, lines - std::min(lines, rows));
}

Page frame(const Page& page, Scroll& scroll, std::string_view foot, const Terminal& terminal) {
  const auto& lines = page.lines();
  const std::size_t rows = std::max<std::size_t>(terminal.rows, 2) - 1;
  scroll.keep_within(lines.size(), rows);
  const std::size_t end = std::min(lines.size(), scroll.first + rows);
  Page out;
  for (std::size_t i = scroll.first; i < end; ++i) out.line(lines[i]);
  for (std::size_t i = end - scroll.first; i < rows; ++i) out.line();
  const std::string where =
      lines.size() > rows ? fmt::format("{}-{} of {}  ", scroll.first + 1, end, lines.size()) : std::string();
  out.line({{where + std::string(foot)}});
  return out;
}

}  // namespace gpuhealth::cli
