// SPDX-License-Identifier: Apache-2.0
#include "cli/numbers.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

std::string state_of(const Condition& c) {
  if (c.state == ConditionState::Confirmed && c.acknowledged) return "acknowledged";
  if (c.state == ConditionState::Raised) return "seen";  // not for long enough yet
  return std::string(to_string(c.state));
}

std::string when(const Condition& c, WallTime now) {
  if (c.state != ConditionState::Cleared) return format_since(c.since, now);
  return format_time_short(c.since, now) + " for " + format_duration(c.cleared - c.since);
}

void add_evidence(Page& page, const Condition& c, const Terminal& terminal) {
  if (c.evidence.empty()) return;
  page.line({{"Evidence", Tone::Heading}});
  std::vector<Line> rows;
  rows.reserve(c.evidence.size());
  for (const Evidence& e : c.evidence) rows.push_back({{e.name}, {e.value}});
  add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, 2);
}

void add_meaning(Page& page, ConditionType type, const Terminal& terminal) {
  page.line({{"What it means", Tone::Heading}});
  page.paragraph(info(type).meaning, 2, terminal.columns);
}

void add_advice(Page& page, ConditionType type, const Terminal& terminal) {
  page.line({{"What to do", Tone::Heading}});
  page.paragraph(info(type).advice, 2, terminal.columns);
}

}  // namespace

Page render_conditions(const std::vector<Condition>& conditions, WallTime now, const Terminal& terminal) {
  Page page;
  if (conditions.empty()) {
    page.line({{"No condition."}});
    return page;
  }
  for (const Condition& c : conditions) {
    const bool over = c.state == ConditionState::Cleared;
    page.line({{to_string(c.severity), over ? Tone::Plain : tone_of(c.severity)},
               {"  "},
               {info(c.type).title, Tone::Heading}});
    page.line({{"  " + c.device_label + ": " + state_of(c) + ", " + when(c, now)}});
    if (!c.detail.empty()) page.paragraph(c.detail, 2, terminal.columns);
    page.line({whole("  " + c.id)});
  }
  return page;
}

Page render_explain(const Condition& c, WallTime now, const Terminal& terminal) {
  Page page;
  page.line({{to_string(c.severity), tone_of(c.severity)}, {"  "}, {info(c.type).title, Tone::Heading}});
  page.line({{c.device_label}});
  page.line({{state_of(c) + ", " + when(c, now) + "; last seen " + format_time(c.last_seen)}});
  if (!c.detail.empty()) page.paragraph(c.detail, 0, terminal.columns);
  page.line();
  add_meaning(page, c.type, terminal);
  add_evidence(page, c, terminal);
  add_advice(page, c.type, terminal);
  page.line();
  page.line({whole("id    " + c.id)});
  page.line({{"boot  " + c.boot_id}});
  if (needs_attention(c)) {
    page.line();
    page.line({{"Known and accepted?"}});
    page.line({whole("  gpuhealthctl acknowledge " + c.id)});
  }
  return page;
}

Page render_explain(ConditionType type, std::span<const Condition> conditions, WallTime now, const Terminal& terminal) {
  Page page;
  const ConditionInfo& row = info(type);
  page.line({{to_string(row.severity), tone_of(row.severity)}, {"  "}, {row.title, Tone::Heading}});
  page.line();
  add_meaning(page, type, terminal);
  add_advice(page, type, terminal);
  std::vector<Condition> present;
  for (const Condition& c : conditions) {
    if (c.type == type) present.push_back(c);
  }
  page.line();
  if (present.empty()) {
    page.line({{"There is none now."}});
    return page;
  }
  page.append(render_conditions(present, now, terminal));
  return page;
}

}  // namespace gpuhealth::cli
