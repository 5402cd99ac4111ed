// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/numbers.hpp"
#include "cli/report.hpp"

namespace gpuhealth::cli {

Json report_json(const Report& r) {
  Json out;
  out["made"] = time_or_null(r.made);
  out["since"] = time_or_null(r.since);
  out["summary"] = summary(r.machine);
  out["kernel_release"] = text_or_null(r.machine.manager.kernel_release);
  out["conditions"] = json_conditions(r.machine.conditions)["conditions"];
  out["past"] = json_conditions(r.past)["conditions"];
  out["timeline"] = Json::array();
  for (const auto& row : r.timeline)
    out["timeline"].push_back({{"time", time_or_null(row.time)},
                               {"severity", to_string(row.severity)},
                               {"what", row.what},
                               {"device", text_or_null(row.device)},
                               {"text", row.text}});
  out["compatibility"] = Json::array();
  for (const auto& row : r.compatibility) {
    Json kernels = Json::array();
    for (const auto& [release, cell] : row.kernels)
      kernels.push_back({{"kernel", release},
                         {"runs", cell.runs},
                         {"slower", number(cell.slower)},
                         {"metric", text_or_null(cell.metric)},
                         {"bad", text_or_null(cell.bad)}});
    out["compatibility"].push_back({{"device", row.device}, {"runtime", row.runtime}, {"kernels", std::move(kernels)}});
  }
  out["kernel_changes"] = Json::array();
  for (const auto& c : r.changes)
    out["kernel_changes"].push_back(
        {{"time", time_or_null(c.time)}, {"device", c.device}, {"before", c.before}, {"after", c.after}});
  out["ratios"] = Json::array();
  for (const auto& c : r.ratios) {
    double worst = 0;
    for (const auto& p : c.points) worst = std::max(worst, p.slower);
    out["ratios"].push_back({{"device", c.device},
                             {"name", c.name},
                             {"runs", c.points.size()},
                             {"worst", number(worst)},
                             {"last", number(c.points.back().slower)}});
  }
  out["notes"] = r.notes;
  return out;
}

Page report_page(const Report& r, const Terminal& terminal) {
  Page page;
  page.line({{summary(r.machine), needs_attention(r.machine) ? Tone::Warning : Tone::Good}});
  for (const auto& c : worst_first(r.machine.conditions))
    page.line({{"  " + std::string(to_string(c.severity)), tone_of(c.severity)},
               {"  " + std::string(info(c.type).title) + ": " + c.device_label}});
  page.line();
  page.line({{"What happened since " + format_time(r.since), Tone::Heading}});
  std::vector<Line> rows;
  constexpr std::size_t kRows = 20;
  for (const auto& row : r.timeline) {
    if (rows.size() == kRows) break;
    rows.push_back({{format_time(row.time)}, {row.what, tone_of(row.severity)}, {row.text}});
  }
  if (rows.empty()) page.line({{"  nothing"}});
  add_table(page, {{"", Align::Left, false}, {"", Align::Left, false}, {"", Align::Left, true}}, rows, terminal, 2);
  if (r.timeline.size() > kRows) page.line({{fmt::format("  … and {} more rows", r.timeline.size() - kRows)}});
  if (!r.compatibility.empty()) {
    page.line();
    page.line({{"GPU, runtime, kernel", Tone::Heading}});
    rows.clear();
    for (const auto& row : r.compatibility) {
      for (const auto& [release, cell] : row.kernels) {
        const bool slow = cell.slower >= 1.05;
        const std::string said = !cell.bad.empty() ? cell.bad
                                 : slow            ? fmt::format("{:.2g}x slower: {}", cell.slower, cell.metric)
                                                   : "good";
        rows.push_back(
            {{row.device}, {row.runtime}, {release}, {said, slow || !cell.bad.empty() ? Tone::Warning : Tone::Good}});
      }
    }
    add_table(page,
              {{"", Align::Left, false}, {"", Align::Left, true}, {"", Align::Left, false}, {"", Align::Left, true}},
              rows, terminal, 2);
  }
  for (const auto& note : r.notes) page.line({{note}});
  page.line();
  page.line({{"With curves, for a browser: gpuhealthctl report --html FILE"}});
  return page;
}

}  // namespace gpuhealth::cli
