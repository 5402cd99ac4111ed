// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

std::string count_of(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

}  // namespace

Page render_log(std::span<const klog::Event> events, const Terminal& terminal) {
  Page page;
  if (events.empty()) {
    page.line({{"Nothing about a GPU that means something.", Tone::Good}});
    return page;
  }
  std::map<Severity, std::size_t> of;
  for (const auto& event : events) ++of[event.severity];
  page.line(
      {{count_of(events.size(), "event", "events") + ": "},
       {fmt::format("{} critical", of[Severity::Critical]), of[Severity::Critical] > 0 ? Tone::Critical : Tone::Plain},
       {", "},
       {count_of(of[Severity::Warning], "warning", "warnings"),
        of[Severity::Warning] > 0 ? Tone::Warning : Tone::Plain},
       {fmt::format(", {} for information", of[Severity::Info])}});
  page.line();
  std::vector<Line> rows;
  rows.reserve(events.size());
  for (const auto& event : events) {
    rows.push_back({{std::to_string(event.line)},
                    {to_string(event.severity), tone_of(event.severity)},
                    {klog::info(event.type).name},
                    {event.device ? to_string(*event.device) : "-"},
                    {event.count > 1 ? fmt::format("x{}", event.count) : ""},
                    {event.text}});
  }
  add_table(page, {{"line", Align::Right}, {"severity"}, {"type"}, {"device"}, {"count"}, {"text", Align::Left, true}},
            rows, terminal);
  return page;
}

}  // namespace gpuhealth::cli
