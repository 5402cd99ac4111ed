// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/json_canary.hpp"

namespace gpuhealth::cli {
namespace {

using canary::stats::Level;

std::string value_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : std::string("-");
}

Tone tone_of(Level level) {
  return level == Level::Confirmed ? Tone::Critical : level == Level::Suspect ? Tone::Warning : Tone::Good;
}

Tone tone_of_verdict(std::string_view verdict) {
  if (verdict == "ok" || verdict == "same" || verdict == "faster") return Tone::Good;
  if (verdict == "no baseline" || verdict == "unsupported" || verdict == "too few runs") return Tone::Plain;
  return verdict == "busy" ? Tone::Note : Tone::Critical;
}

void add_finding(Page& page, const health::CanaryFinding& f, const Terminal& terminal) {
  const auto& finding = f.finding;
  page.line({{canary::time_text(finding.time) + "  "},
             {std::string(to_string(finding.level)), tone_of(finding.level)},
             {" " + std::string(to_string(finding.kind)) + "  " + finding.canary + " on " + finding.device}});
  page.paragraph({finding.detail}, 2, terminal.columns);
  if (finding.level == Level::Recovered) return;
  page.paragraph({"Cause: " + f.cause.text}, 2, terminal.columns);
  for (const auto& [field, change] : f.cause.changed.empty() ? finding.changed : f.cause.changed)
    page.line({{"  Changed: " + field + " "}, {change}});
}

}  // namespace

Page render_replay(const Replay& replay, const Terminal& terminal) {
  Page page;
  page.line({{fmt::format("{} lines, {} judged, {} ignored", replay.lines, replay.judged, replay.bad.size())}});
  for (const auto& bad : replay.bad) page.line({{fmt::format("  line {}: {}", bad.line, bad.reason)}});
  for (const auto& f : replay.findings) add_finding(page, f, terminal);
  page.line({{replay.findings.empty() ? "Nothing found." : fmt::format("{} open at the end.", replay.open.size())}});
  return page;
}

Page render_baselines(const std::vector<canary::stats::BaselineView>& baselines, const Terminal& terminal) {
  Page page;
  std::vector<Line> rows;
  rows.reserve(baselines.size());
  for (const auto& b : baselines)
    rows.push_back({{b.device},
                    {b.canary},
                    {b.metric},
                    {b.epoch},
                    {std::to_string(b.runs)},
                    {value_text(b.value)},
                    {b.sigma > 0 ? fmt::format("{:.1f} %", b.sigma * 100) : "-"},
                    {b.last_known_good ? b.state + ", last known good" : b.state}});
  if (rows.empty())
    page.line({{"No baseline yet."}});
  else
    add_table(page,
              {{"DEVICE"},
               {"CANARY"},
               {"METRIC"},
               {"EPOCH", Align::Left, true},
               {"RUNS", Align::Right},
               {"VALUE", Align::Right},
               {"NOISE", Align::Right},
               {"STATE"}},
              rows, terminal);
  return page;
}

Page render_comparison(std::string_view before, std::string_view after, const std::vector<Comparison>& rows,
                       const Terminal& terminal) {
  Page page;
  std::vector<Line> lines;
  lines.reserve(rows.size());
  for (const auto& r : rows)
    lines.push_back({{r.canary},
                     {r.metric},
                     {r.unit},
                     {value_text(r.before)},
                     {value_text(r.after)},
                     {fmt::format("{:.3f}x", r.slower)},
                     {fmt::format("{}/{}", r.before_runs, r.after_runs)},
                     {std::to_string(r.machines)},
                     {r.verdict, tone_of_verdict(r.verdict)}});
  if (lines.empty()) {
    page.line({{"No canary was run under both " + std::string(before) + " and " + std::string(after) + "."}});
    return page;
  }
  add_table(page,
            {{"CANARY"},
             {"METRIC"},
             {"UNIT"},
             {"BEFORE", Align::Right},
             {"AFTER", Align::Right},
             {"TIME", Align::Right},
             {"RUNS", Align::Right},
             {"MACHINES", Align::Right},
             {"VERDICT"}},
            lines, terminal);
  return page;
}

Page render_canaries(const Terminal& terminal) {
  Page page;
  std::vector<Line> rows;
  for (const auto& row : canary::all_canaries())
    rows.push_back({{std::to_string(row.tier)}, {row.canary}, {row.metric}, {row.unit}, {row.text}});
  add_table(page, {{"TIER", Align::Right}, {"CANARY"}, {"METRIC"}, {"UNIT"}, {"MEASURES", Align::Left, true}}, rows,
            terminal);
  return page;
}

Page render_run(const std::vector<RunRow>& rows, std::string_view verdict, const Terminal& terminal) {
  Page page;
  std::vector<Line> lines;
  lines.reserve(rows.size());
  for (const auto& r : rows) {
    const auto& m = r.measurement;
    lines.push_back({{m.canary},
                     {m.metric},
                     {value_text(m.value)},
                     {m.unit},
                     {value_text(r.baseline)},
                     {r.slower ? fmt::format("{:.2f}x", *r.slower) : "-"},
                     {r.verdict, tone_of_verdict(r.verdict)},
                     {m.reason}});
  }
  add_table(page,
            {{"CANARY"},
             {"METRIC"},
             {"VALUE", Align::Right},
             {"UNIT"},
             {"BASELINE", Align::Right},
             {"TIME", Align::Right},
             {"VERDICT"},
             {"", Align::Left, true}},
            lines, terminal);
  page.line({{std::string(verdict), tone_of_verdict(verdict)}});
  return page;
}

}  // namespace gpuhealth::cli
