// SPDX-License-Identifier: Apache-2.0
// One page without scripts, fonts or pictures from elsewhere: it opens from a mail, prints, and follows the reader's
// choice of light or dark. Colours never stand alone: a word says the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/numbers.hpp"
#include "cli/report.hpp"
#include "core/version.hpp"
#include "dbus/names.hpp"

namespace gpuhealth::cli {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#59636e;--line:#d1d9e0;--card:#f6f8fa;--bad:#b3261e;--warn:#8a5300;--good:#1a6b34;
--c0:#0b62c4;--c1:#b3261e;--c2:#1a6b34;--c3:#7b3fb5;--c4:#8a5300;--c5:#00707a}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6edf3;--soft:#a3aeb9;--line:#3a434d;--card:#1d232a;--bad:#ff8f85;--warn:#f0b44c;--good:#6fd08c;
--c0:#6cb2ff;--c1:#ff8f85;--c2:#6fd08c;--c3:#c9a2ff;--c4:#f0b44c;--c5:#5fd3dd}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}h3{font-size:1.05rem;margin:1.2rem 0 .3rem}
a{color:var(--c0)}:focus-visible{outline:3px solid var(--c0);outline-offset:2px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1rem}
.soft{color:var(--soft)}.critical{color:var(--bad);font-weight:600}.warning{color:var(--warn);font-weight:600}.good{color:var(--good);font-weight:600}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:.5rem 0;list-style:none}
.box{background:var(--card);border:1px solid var(--line);border-left-width:5px;border-radius:4px;padding:.6rem .9rem;margin:.7rem 0}
.box.is-critical{border-left-color:var(--bad)}.box.is-warning{border-left-color:var(--warn)}.box p{margin:.3rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}th{white-space:nowrap}td.time{white-space:nowrap}
td,th{overflow-wrap:normal}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.4rem 0}dd{margin:0}
figure{margin:.6rem 0}figcaption{font-size:.92rem}svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}.grid{stroke:var(--line);stroke-width:1}.line{fill:none;stroke-width:1.6}.band{opacity:.18}
.change{stroke:var(--fg);stroke-width:1.2;stroke-dasharray:5 4}.changed text{fill:var(--fg)}
.name{white-space:nowrap;margin-left:.8rem;display:inline-block}.key{display:inline-block;width:1.1rem;height:.22rem;margin:0 .3rem .2rem 0;vertical-align:middle}
.c0.line{stroke:var(--c0)}.c1.line{stroke:var(--c1)}.c2.line{stroke:var(--c2)}.c3.line{stroke:var(--c3)}.c4.line{stroke:var(--c4)}.c5.line{stroke:var(--c5)}
.c0.band,.c0.dot{fill:var(--c0)}.c1.band,.c1.dot{fill:var(--c1)}.c2.band,.c2.dot{fill:var(--c2)}.c3.band,.c3.dot{fill:var(--c3)}.c4.band,.c4.dot{fill:var(--c4)}.c5.band,.c5.dot{fill:var(--c5)}
.key.c0{background:var(--c0)}.key.c1{background:var(--c1)}.key.c2{background:var(--c2)}.key.c3{background:var(--c3)}.key.c4{background:var(--c4)}.key.c5{background:var(--c5)}
@media (max-width:34rem){dl{grid-template-columns:1fr}dt{margin-top:.4rem}svg text{font-size:20px}.often{display:none}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--card:#fff}body{max-width:none;font-size:11pt}nav,.skip{display:none}figure,.box,tr{break-inside:avoid}details>*{display:block}}
)";

const char* class_of(Severity severity) {
  return severity == Severity::Critical ? "critical" : severity == Severity::Warning ? "warning" : "soft";
}

std::string when(WallTime time) {
  return format_time(time).substr(0, 16);
}

class Html {
 public:
  template <class... Args>
  Html& raw(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    return *this;
  }
  void section(const char* id, const char* title) {
    if (open_) text_ += "</section>\n";
    open_ = true;
    raw("<section id=\"{}\" aria-labelledby=\"{}-h\"><h2 id=\"{}-h\">{}</h2>\n", id, id, id, title);
  }
  // A table that is wider than the page scrolls, also by keyboard.
  void begin_table(std::string_view name, std::initializer_list<std::string_view> columns) {
    raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><thead><tr>", html_text(name));
    for (const auto c : columns) raw("<th scope=\"col\">{}</th>", html_text(c));
    text_ += "</tr></thead><tbody>\n";
  }
  void end_table() { text_ += "</tbody></table></div>\n"; }
  void fact(std::string_view name, std::string_view value) {
    if (!value.empty()) raw("<dt class=\"soft\">{}</dt><dd>{}</dd>", html_text(name), html_text(value));
  }
  std::string take() {
    if (open_) text_ += "</section>\n";
    return std::move(text_);
  }

 private:
  std::string text_;
  bool open_ = false;
};

void add_condition(Html& out, const Condition& c) {
  const auto& table = info(c.type);
  out.raw("<article class=\"box is-{}\"><h3>{}</h3><p><span class=\"{}\">{}</span>{} · {} · since {}</p>",
          to_string(c.severity), html_text(table.title), class_of(c.severity), to_string(c.severity),
          c.acknowledged                      ? " (acknowledged)"
          : c.state == ConditionState::Raised ? " (seen, not yet confirmed)"
                                              : "",
          html_text(c.device_label), when(c.since));
  if (!c.detail.empty()) out.raw("<p>{}</p>", html_text(c.detail));
  out.raw("<p>{}</p><p><b>What to do:</b> {}</p>", html_text(table.meaning), html_text(table.advice));
  if (!c.evidence.empty()) {
    out.raw("<details><summary>Evidence</summary><dl>");
    for (const auto& e : c.evidence) out.fact(e.name, e.value);
    out.raw("</dl></details>");
  }
  out.raw("</article>\n");
}

void add_summary(Html& out, const Report& r) {
  out.section("summary", "Summary");
  const bool bad = needs_attention(r.machine);
  out.raw("<p class=\"{}\">{}</p>\n", bad ? "critical" : "good", html_text(summary(r.machine)));
  for (const auto& c : worst_first(r.machine.conditions)) add_condition(out, c);
  out.raw("<dl>");
  out.fact("Kernel", r.machine.manager.kernel_release);
  out.fact("amdgpu", r.machine.manager.amdgpu.version.empty() ? "as in the kernel" : r.machine.manager.amdgpu.version);
  out.fact("gpuhealthd", r.machine.manager.version);
  for (const auto& o : r.others) {
    if (o.interface != dbus::kKernelInterface) continue;
    out.fact("Boots next", dbus::text(o.properties, "Next"));
    out.fact("Last known good", dbus::text(o.properties, "LastKnownGood"));
    out.fact("Verdict on this kernel", dbus::text(o.properties, "State"));
  }
  out.raw("</dl>\n");
  for (const auto& note : r.notes) out.raw("<p class=\"soft\">{}</p>\n", html_text(note));
}

void add_devices(Html& out, const Report& r) {
  out.section("gpus", "GPUs");
  for (const auto& d : r.machine.devices) {
    out.raw("<h3>{}</h3><dl>", html_text(label(d)));
    out.fact("Health", d.health);
    out.fact("Id", d.id);
    out.fact("Family", d.gfx.empty() ? d.family : d.family + ", " + d.gfx);
    out.fact("Driver", d.driver);
    out.fact("VBIOS", d.vbios_version);
    out.fact("Board", d.subsystem_id);
    out.fact("Power state", d.runtime_status);
    out.raw("</dl>\n");
  }
  if (r.machine.devices.empty()) out.raw("<p>None.</p>\n");
}

void add_timeline(Html& out, const Report& r) {
  out.section("timeline", "What happened");
  out.raw("<p class=\"soft\">{} to {}, newest first.</p>\n", when(r.since), when(r.made));
  if (r.timeline.empty()) {
    out.raw("<p>Nothing.</p>\n");
    return;
  }
  out.begin_table("What happened", {"Time", "What", "GPU", "Text"});
  for (const auto& row : r.timeline)
    out.raw("<tr><td class=\"time\">{}</td><td><span class=\"{}\">{}{}</span></td><td>{}</td><td>{}</td></tr>\n",
            when(row.time), row.what == "over" ? "good" : class_of(row.severity), row.what,
            row.severity == Severity::Info ? "" : ", " + std::string(to_string(row.severity)), html_text(row.device),
            html_text(row.text));
  out.end_table();
}

void begin_figure(Html& out, const std::string& caption) {
  out.raw("<figure><figcaption>{}", html_text(caption));
}

// The same numbers as text, for who cannot or does not want to see the picture.
void add_numbers(Html& out, const std::vector<Series>& group) {
  out.raw("<details><summary>Numbers</summary>");
  out.begin_table("Numbers", {"Reading", "Least", "Mean", "Greatest", "Last"});
  for (const auto& s : group) {
    const auto sum = summarise(s.points);
    const auto unit = s.metric->unit;
    out.raw("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", s.metric->name,
            format_value(sum.min, unit), format_value(sum.mean, unit), format_value(sum.max, unit),
            format_value(sum.last, unit));
  }
  out.end_table();
  out.raw("</details>");
}

std::vector<KernelChange> changes_of(const Report& r, const std::string& pci) {
  std::vector<KernelChange> out;
  std::ranges::copy_if(r.changes, std::back_inserter(out), [&](const auto& c) { return c.device == pci; });
  return out;
}

void add_curves(Html& out, const Report& r) {
  struct Group {
    const char* title;
    std::string_view prefix;
  };
  static constexpr auto kGroups =
      std::to_array<Group>({{"Temperature", "temperature."}, {"Power", "power."}, {"Clocks", "clock."}});
  out.section("curves", "Temperature, power, clocks");
  int number = 0;
  for (const auto& d : r.machine.devices) {
    out.raw("<h3>{}</h3>\n", html_text(label(d)));
    bool any = false;
    for (const auto& group : kGroups) {
      std::vector<Series> mine;
      for (const auto& s : r.series) {
        if (s.device == d.id && !s.points.empty() && s.metric->name.starts_with(group.prefix)) mine.push_back(s);
      }
      if (mine.empty()) continue;
      any = true;
      begin_figure(out, group.title);
      for (std::size_t i = 0; i < mine.size(); ++i)
        out.raw(" <span class=\"name\"><span class=\"key c{}\"></span>{}</span>", i % 6,
                html_text(mine[i].metric->name.substr(group.prefix.size())));
      out.raw("</figcaption>{}", svg_of(mine, changes_of(r, d.pci), fmt::format("plot{}", ++number)));
      add_numbers(out, mine);
      out.raw("</figure>\n");
    }
    if (!any) out.raw("<p class=\"soft\">No value of this time is kept.</p>\n");
  }
}

void add_canaries(Html& out, const Report& r) {
  out.section("canaries", "Speed");
  out.raw(
      "<p>Canaries are short tests. The curves say how many times longer one takes than it did at first; dashed lines "
      "mark a "
      "change of the kernel.</p>\n");
  std::set<std::string> devices;
  for (const auto& c : r.ratios) devices.insert(c.device);
  if (devices.empty()) out.raw("<p>No canary has run in this time.</p>\n");
  int number = 0;
  for (const auto& device : devices) {
    std::vector<RatioCurve> curves;
    std::ranges::copy_if(r.ratios, std::back_inserter(curves), [&](const auto& c) { return c.device == device; });
    // Those that fare worst: six lines can be told apart.
    const auto worst = [](const RatioCurve& c) { return std::ranges::max(c.points, {}, &RatioPoint::slower).slower; };
    std::ranges::sort(curves, std::ranges::greater{}, [&](const RatioCurve& c) { return std::pair(worst(c), c.name); });
    out.raw("<h3>{}</h3>\n", html_text(device));
    begin_figure(out, "Times slower than at first");
    const auto shown =
        std::vector<RatioCurve>(curves.begin(), curves.begin() + std::min<std::ptrdiff_t>(6, std::ssize(curves)));
    for (std::size_t i = 0; i < shown.size(); ++i)
      out.raw(" <span class=\"name\"><span class=\"key c{}\"></span>{}</span>", i, html_text(shown[i].name));
    out.raw("</figcaption>{}<details><summary>Numbers</summary>",
            svg_of(shown, r.since, r.made, changes_of(r, device), fmt::format("ratio{}", ++number)));
    out.begin_table("Numbers", {"Canary", "Runs", "Worst", "Last"});
    for (const auto& c : curves)
      out.raw("<tr><th scope=\"row\">{}</th><td>{}</td><td>{:.2f}x</td><td>{:.2f}x</td></tr>", html_text(c.name),
              c.points.size(), worst(c), c.points.back().slower);
    out.end_table();
    out.raw("</details></figure>\n");
  }
}

std::string cell_text(const Cell& cell) {
  if (!cell.bad.empty()) return fmt::format("<span class=\"critical\">{}</span>", html_text(cell.bad));
  if (cell.metric.empty()) return fmt::format("<span class=\"good\">runs</span> ({})", cell.runs);
  if (cell.slower < 1.05) return fmt::format("<span class=\"good\">good</span> ({})", cell.runs);
  return fmt::format("<span class=\"{}\">{:.2g}x slower</span>: {} ({})", cell.slower < 1.5 ? "warning" : "critical",
                     cell.slower, html_text(cell.metric), cell.runs);
}

void add_compatibility(Html& out, const Report& r) {
  out.section("compatibility", "GPU, kernel, runtime");
  if (r.compatibility.empty()) {
    out.raw("<p>No canary has run yet.</p>\n");
    return;
  }
  std::set<std::string> kernels;
  for (const auto& row : r.compatibility) {
    for (const auto& [kernel, cell] : row.kernels) kernels.insert(kernel);
  }
  out.raw("<p>Each row is compared with its own best kernel. In parentheses: results that it rests on.</p>\n");
  out.raw(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"GPU, kernel, runtime\"><table><thead><tr>"
      "<th scope=\"col\">GPU</th><th scope=\"col\">Runtime</th>");
  for (const auto& k : kernels) out.raw("<th scope=\"col\">{}</th>", html_text(k));
  out.raw("</tr></thead><tbody>\n");
  for (const auto& row : r.compatibility) {
    out.raw("<tr><th scope=\"row\">{}</th><td>{}</td>", html_text(row.device), html_text(row.runtime));
    for (const auto& k : kernels) {
      const auto it = row.kernels.find(k);
      out.raw("<td>{}</td>", it == row.kernels.end() ? "<span class=\"soft\">not run</span>" : cell_text(it->second));
    }
    out.raw("</tr>\n");
  }
  out.end_table();
}

void add_past(Html& out, const Report& r) {
  std::vector<Condition> over;
  std::ranges::copy_if(r.past, std::back_inserter(over),
                       [](const auto& c) { return c.state == ConditionState::Cleared; });
  if (over.empty()) return;
  out.section("evidence", "Evidence of what is over");
  for (const auto& c : over) {
    out.raw("<details><summary>{}: {}, {} to {}</summary><p>{}</p><dl>", html_text(info(c.type).title),
            html_text(c.device_label), when(c.since), when(c.cleared), html_text(c.detail));
    for (const auto& e : c.evidence) out.fact(e.name, e.value);
    out.raw("</dl></details>\n");
  }
}

}  // namespace

std::string report_html(const Report& r) {
  Html out;
  out.raw(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>GPU health, {}</title><style>{}</style></head>"
      "<body>\n",
      when(r.made), kStyle);
  out.raw(
      "<a class=\"skip\" href=\"#summary\">To the summary</a><header><h1>GPU health</h1><p class=\"soft\">{}, by "
      "gpuhealthctl {}</p><nav aria-label=\"Sections\"><ul>",
      when(r.made), kVersion);
  for (const auto& [id, name] :
       std::to_array<std::pair<const char*, const char*>>({{"summary", "Summary"},
                                                           {"gpus", "GPUs"},
                                                           {"timeline", "What happened"},
                                                           {"canaries", "Speed"},
                                                           {"compatibility", "GPU, kernel, runtime"},
                                                           {"curves", "Temperature, power, clocks"}}))
    out.raw("<li><a href=\"#{}\">{}</a></li>", id, name);
  out.raw("</ul></nav></header>\n<main>\n");
  add_summary(out, r);
  add_devices(out, r);
  add_timeline(out, r);
  add_canaries(out, r);
  add_compatibility(out, r);
  add_curves(out, r);
  add_past(out, r);
  return out.take() + "</main></body></html>\n";
}

}  // namespace gpuhealth::cli
