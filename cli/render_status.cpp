// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/numbers.hpp"
#include "cli/render.hpp"
#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

constexpr std::size_t kIndent = 10;  // below the text that follows "CRITICAL  "

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

Tone tone_of_health(std::string_view health) {
  if (const auto severity = severity_from(health)) return tone_of(*severity);
  return health == "ok" ? Tone::Good : Tone::Plain;
}

// "AMD Radeon RX 7900 XTX" is told from its neighbours by its end.
std::string short_label(std::string name) {
  for (const std::string_view brand : {"AMD ", "Radeon ", "Instinct "}) {
    if (name.starts_with(brand) && name.size() > brand.size()) name.erase(0, brand.size());
  }
  return name;
}

Span tag(const Condition& c) {
  std::string text = upper(to_string(c.severity));
  text.resize(kIndent, ' ');
  return {text, tone_of(c.severity)};
}

Page problem(const Condition& c, WallTime now, const Terminal& terminal) {
  Page page;
  page.line({tag(c), {info(c.type).title, Tone::Heading}});
  page.line({{std::string(kIndent, ' ')}, {c.device_label}});
  const std::string since = "S" + format_since(c.since, now).substr(1) + ".";
  page.paragraph(c.detail.empty() ? since : c.detail + (c.detail.ends_with('.') ? " " : ". ") + since, kIndent,
                 terminal.columns);
  page.paragraph(std::string(info(c.type).advice), kIndent, terminal.columns);
  return page;
}

// One line, or two where the screen is narrow: nothing of it is cut.
Page in_brief(const Condition& c, const Terminal& terminal) {
  Page page;
  const std::string text = short_label(c.device_label) + ": " + std::string(info(c.type).title);
  if (terminal.columns == 0 || kIndent + width(clean(text)) <= terminal.columns) {
    page.line({tag(c), {text}});
    return page;
  }
  page.line({tag(c), {info(c.type).title}});
  page.paragraph(short_label(c.device_label), kIndent, terminal.columns);
  return page;
}

// As many problems in full as fit the screen, then one line each, then how many more.
Page problems(const std::vector<Condition>& conditions, std::size_t budget, WallTime now, const Terminal& terminal) {
  std::vector<Page> full;
  std::vector<Page> brief;
  for (const Condition& c : conditions) {
    if (!needs_attention(c)) continue;
    full.push_back(problem(c, now, terminal));
    brief.push_back(in_brief(c, terminal));
  }
  Page page;
  std::size_t shown = 0;
  for (; shown < full.size(); ++shown) {
    const std::size_t rest = full.size() - shown - 1;
    const std::size_t needed = page.lines().size() + full[shown].lines().size() + std::min<std::size_t>(rest, 1);
    if (budget > 0 && shown > 0 && needed > budget) break;
    page.append(full[shown]);
  }
  for (; shown < full.size(); ++shown) {
    const bool last = shown + 1 == full.size();
    if (page.lines().size() + brief[shown].lines().size() + (last ? 0 : 1) > budget) break;
    page.append(brief[shown]);
  }
  if (shown < full.size()) page.line({fmt::format("and {} more: gpuhealthctl conditions", full.size() - shown)});
  return page;
}

std::string count_of(std::size_t count, std::string_view what) {
  return count == 0 ? "" : fmt::format("{} {}", count, what);
}

// What is open and yet nobody has to act on.
void add_quiet_ones(Page& page, const std::vector<Condition>& conditions) {
  std::size_t acknowledged = 0;
  std::size_t raised = 0;
  std::size_t notes = 0;
  for (const Condition& c : conditions) {
    if (needs_attention(c)) continue;
    acknowledged += c.acknowledged ? 1 : 0;
    raised += !c.acknowledged && c.state == ConditionState::Raised ? 1 : 0;
    notes += !c.acknowledged && c.state == ConditionState::Confirmed ? 1 : 0;
  }
  std::string text;
  for (const std::string& part : {count_of(acknowledged, "acknowledged"), count_of(raised, "seen, not yet confirmed"),
                                  count_of(notes, "for information")}) {
    if (!part.empty()) text += (text.empty() ? "Also open: " : ", ") + part;
  }
  if (!text.empty()) page.line({text + ": gpuhealthctl conditions"});
}

std::string cell(const dbus::DeviceView& device, ReadingId id, bool with_unit = true) {
  const auto v = value(device, id);
  if (!v) return "-";
  const ReadingInfo* row = find_reading(id);
  return with_unit ? fmt::format("{:.0f}{}{}", *v, row->unit == Unit::Percent ? "" : " ", to_string(row->unit))
                   : fmt::format("{:.0f}", *v);
}

template <std::size_t N>
std::string first_cell(const dbus::DeviceView& device, const std::array<ReadingId, N>& ids) {
  for (const ReadingId id : ids) {
    if (value(device, id)) return cell(device, id);
  }
  return "-";
}

std::string memory_cell(const dbus::DeviceView& device) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  const auto total = value(device, ReadingId::VramTotal);
  const auto used = value(device, ReadingId::VramUsed);
  if (!total) return "-";
  const bool small = *total < gib;  // an APU's carve-out
  const double unit = small ? gib / 1024 : gib;
  const auto number = [&](double bytes) {
    return bytes / unit < 9.95 ? format_number(bytes / unit) : fmt::format("{:.0f}", bytes / unit);
  };
  return (used ? number(*used) : "-") + "/" + number(*total) + (small ? " MiB" : " GiB");
}

std::string link_cell(const dbus::DeviceView& device) {
  const auto width = value(device, ReadingId::PcieWidth);
  const auto speed = value(device, ReadingId::PcieSpeed);
  if (!width && !speed) return "-";
  std::string out = width ? format_value(*width, Unit::Lane) : "";
  if (speed) out += (out.empty() ? "" : " ") + format_link_speed(*speed);
  return out;
}

std::string address_cell(const std::string& pci, bool one_domain) {
  return one_domain && pci.starts_with("0000:") ? pci.substr(5) : pci;
}

void add_devices(Page& page, const Machine& machine, const Terminal& terminal) {
  constexpr std::array temperatures = {ReadingId::TemperatureJunction, ReadingId::TemperatureEdge,
                                       ReadingId::TemperatureGfx, ReadingId::TemperatureSoc};
  constexpr std::array powers = {ReadingId::PowerAverage, ReadingId::PowerInput};
  const bool one_domain =
      std::ranges::all_of(machine.devices, [](const auto& d) { return d.pci.starts_with("0000:"); });
  const std::vector<Column> columns = {{"GPU", Align::Left, true},
                                       {"PCI"},
                                       {"health"},
                                       {"temp", Align::Right},
                                       {"power", Align::Right},
                                       {"busy", Align::Right},
                                       {"MHz", Align::Right},
                                       {"VRAM used", Align::Right},
                                       {"link"}};
  std::vector<Line> rows;
  for (const auto& d : machine.devices) {
    const std::string name =
        terminal.columns == 0 || terminal.columns > 110 ? display_name(d) : short_label(display_name(d));
    Line row = {{name}, {address_cell(d.pci, one_domain)}, {d.health, tone_of_health(d.health)}};
    if (asleep(d)) {
      row.emplace_back("asleep");
    } else {
      for (const auto& text : {first_cell(d, temperatures), first_cell(d, powers), cell(d, ReadingId::UtilizationGfx),
                               cell(d, ReadingId::ClockGfx, false), memory_cell(d), link_cell(d)})
        row.emplace_back(text);
    }
    rows.push_back(std::move(row));
  }
  add_table(page, columns, rows, terminal);
}

bool is_only_decided(const dbus::ActionView& action) {
  return action.state == "observed" || action.state == "shadow" || action.state == "blocked";
}

// Queued, running, in force, or refused: what a person wants to know of.
bool is_open(const dbus::ActionView& action) {
  constexpr std::array<std::string_view, 7> states = {"queued",    "running",          "intended", "applied",
                                                      "confirmed", "failed-to-revert", "refused"};
  return std::ranges::find(states, action.state) != states.end();
}

// What the policies do about it; a daemon that is older says nothing.
void add_policies(Page& page, const Machine& machine, const Terminal& terminal) {
  constexpr std::size_t kMost = 4;  // of each
  const auto& m = machine.manager;
  if (m.policy_mode.empty()) return;
  const auto warn = [&](const std::string& text) { page.paragraph({text, Tone::Warning}, 0, terminal.columns); };
  if (!m.safe_mode.empty()) warn("Safe mode, nothing is changed: " + m.safe_mode);
  if (m.breaker_open) warn("The breaker is open, nothing is changed until gpuhealthctl actions resume.");
  if (!m.policy_problem.empty()) warn("Policies not loaded, the last good ones stay: " + m.policy_problem);
  const auto list = [&](const char* title, auto whether, auto line) {
    std::size_t count = 0;
    for (auto action = machine.actions.rbegin(); action != machine.actions.rend(); ++action)
      if (whether(*action) && ++count <= kMost) {
        if (count == 1) page.line({{title}});
        page.paragraph({line(*action)}, 2, terminal.columns);
      }
    if (count > kMost) page.line({fmt::format("  and {} more: gpuhealthctl actions list", count - kMost)});
  };
  list("Actions:", is_open, [&](const dbus::ActionView& a) {
    std::string out = a.id + " on " + a.device_label + ": " + a.state;
    if (!a.before.empty()) out += ", " + a.before + " -> " + (a.after.empty() ? a.wanted : a.after);
    if (a.confirm_by != WallTime{})
      out += ", taken back in " + format_duration(a.confirm_by - machine.now) + " unless found good";
    return out + (a.state == "refused" ? ": " + a.text : "");
  });
  list("Decided, and not done:", is_only_decided, [&](const dbus::ActionView& a) {
    return a.state + ": " + a.policy + "/" + a.rule + " " + a.text + " on " + a.device_label + ", " +
           format_since(a.detected, machine.now) + ": " + a.reason;
  });
}

// What the daemon says of itself.
void add_daemon(Page& page, const Machine& machine, const Terminal& terminal) {
  const auto& m = machine.manager;
  const auto last = last_sample(machine);
  std::string text = "gpuhealthd " + m.version + ": ";
  Tone tone = Tone::Plain;
  if (machine.devices.empty()) {
    text += "running, nothing to sample";
  } else if (!last) {
    text += "running, no sample yet";
  } else if (machine.now - *last > std::chrono::minutes(1)) {
    text += "no sample for " + format_duration(machine.now - *last);
    tone = Tone::Warning;
  } else {
    text += "sampling, last " + format_duration(machine.now - *last) + " ago";
  }
  if (m.store_problem.empty()) text += ", history works";
  if (!m.policy_mode.empty()) text += ", policies " + m.policy_mode;
  page.line({{text + ".", tone}});
  if (!m.store_problem.empty())
    page.paragraph({"History does not work: " + m.store_problem, Tone::Warning}, 0, terminal.columns);
  if (!m.config_problem.empty())
    page.paragraph({"Configuration not loaded, the last good one stays: " + m.config_problem, Tone::Warning}, 0,
                   terminal.columns);
}

}  // namespace

Page render_status(const Machine& machine, const Terminal& terminal) {
  const auto conditions = worst_first(machine.conditions);
  const bool attention = needs_attention(conditions);
  Page bottom;
  add_quiet_ones(bottom, conditions);
  bottom.line();
  if (!machine.devices.empty()) {
    add_devices(bottom, machine, terminal);
    bottom.line();
  }
  add_policies(bottom, machine, terminal);
  add_daemon(bottom, machine, terminal);

  Page page;
  page.line({{summary(machine), attention ? Tone::Heading : Tone::Plain}});
  if (attention) {
    const std::size_t taken = bottom.lines().size() + 3;  // summary, empty line, the shell's prompt
    const std::size_t screen = terminal.rows == 0 ? 24 : terminal.rows;
    const std::size_t budget = terminal.columns == 0 ? 0 : std::max<std::size_t>(screen - std::min(screen, taken), 4);
    page.line();
    page.append(problems(conditions, budget, machine.now, terminal));
  }
  page.append(bottom);
  return page;
}

}  // namespace gpuhealth::cli
