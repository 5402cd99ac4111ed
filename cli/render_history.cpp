// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/numbers.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

std::string unit_of(const ReadingInfo& metric) {
  return metric.unit == Unit::Byte || metric.unit == Unit::Count ? "" : ", " + std::string(to_string(metric.unit));
}

void add_series(Page& page, const Series& series, const Terminal& terminal, PlotSize size) {
  const ReadingInfo& metric = *series.metric;
  page.line({{series.label, Tone::Heading}, {"  " + std::string(metric.name) + unit_of(metric)}});
  if (series.points.empty()) {
    page.line({{"  no value between " + format_time(series.since) + " and " + format_time(series.until)}});
    return;
  }
  // A pipe gets the plain marks, so that what reads it needs no font.
  for (const std::string& line : plot(series, size, terminal.utf8 && terminal.interactive)) page.line({{line}});
  const Summary s = summarise(series.points);
  page.line({{fmt::format("min {}   mean {}   max {}   last {}   ({} points)", format_value(s.min, metric.unit),
                          format_value(s.mean, metric.unit), format_value(s.max, metric.unit),
                          format_value(s.last, metric.unit), series.points.size())}});
}

}  // namespace

Page render_history(std::span<const Series> series, const Terminal& terminal, PlotSize size) {
  Page page;
  for (const Series& s : series) {
    if (&s != series.data()) page.line();
    add_series(page, s, terminal, size);
  }
  if (series.empty()) page.line({{"No GPU found."}});
  return page;
}

}  // namespace gpuhealth::cli
