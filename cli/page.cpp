// SPDX-License-Identifier: Apache-2.0
#include "cli/page.hpp"

#include <algorithm>
#include <array>

#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

constexpr std::array<std::string_view, 6> kOn = {"", "\x1b[1m", "\x1b[32m", "\x1b[36m", "\x1b[1;33m", "\x1b[1;31m"};
constexpr std::string_view kOff = "\x1b[0m";

std::size_t width_of(const std::vector<Column>& columns, const std::vector<Line>& rows, std::size_t index) {
  std::size_t widest = width(columns[index].heading);
  for (const Line& row : rows) {
    if (index < row.size()) widest = std::max(widest, width(row[index].text));
  }
  return widest;
}

Line table_line(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, const Line& cells,
                std::size_t indent, bool utf8) {
  Line out;
  if (indent > 0) out.emplace_back(std::string(indent, ' '));
  for (std::size_t i = 0; i < columns.size() && i < cells.size(); ++i) {
    Span cell = cells[i];
    if (columns[i].flexible) cell.text = fit(cell.text, widths[i], utf8);
    const std::size_t space = widths[i] - std::min(widths[i], width(cell.text));
    const bool last = i + 1 == cells.size() || i + 1 == columns.size();
    if (i > 0) out.emplace_back("  ");
    if (columns[i].align == Align::Right && space > 0) out.emplace_back(std::string(space, ' '));
    out.push_back(std::move(cell));
    if (columns[i].align == Align::Left && space > 0 && !last) out.emplace_back(std::string(space, ' '));
  }
  return out;
}

}  // namespace

Tone tone_of(Severity severity) {
  constexpr std::array<Tone, 3> tones = {Tone::Note, Tone::Warning, Tone::Critical};
  return tones.at(static_cast<std::size_t>(severity));
}

Span::Span(std::string_view unsafe, Tone a_tone) : text(clean(unsafe)), tone(a_tone) {}

Span whole(std::string_view unsafe) {
  Span span(unsafe);
  span.whole = true;
  return span;
}

void Page::paragraph(const Span& text, std::size_t indent, std::size_t columns) {
  const std::size_t room = columns == 0 ? 0 : std::max<std::size_t>(columns - std::min(columns, indent), 20);
  for (const std::string& part : wrap(text.text, room)) {
    line({Span(std::string(indent, ' ')), Span(part, text.tone)});
  }
}

void add_table(Page& page, const std::vector<Column>& columns, const std::vector<Line>& rows, const Terminal& terminal,
               std::size_t indent) {
  std::vector<std::size_t> widths;
  std::size_t total = indent;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(width_of(columns, rows, i));
    total += widths.back() + (i > 0 ? 2 : 0);
  }
  constexpr std::size_t kLeast = 8;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (terminal.columns == 0 || total <= terminal.columns || !columns[i].flexible || widths[i] <= kLeast) continue;
    const std::size_t cut = std::min(total - terminal.columns, widths[i] - kLeast);
    widths[i] -= cut;
    total -= cut;
  }
  Line headings;
  for (const Column& column : columns) headings.emplace_back(column.heading, Tone::Heading);
  const bool headed = std::ranges::any_of(columns, [](const Column& c) { return !c.heading.empty(); });
  if (headed) page.line(table_line(columns, widths, headings, indent, terminal.utf8));
  for (const Line& row : rows) page.line(table_line(columns, widths, row, indent, terminal.utf8));
}

std::string render(const Line& line, const Terminal& terminal) {
  std::size_t total = 0;
  bool cut = terminal.columns > 0;
  for (const Span& span : line) total += width(span.text), cut = cut && !span.whole;
  cut = cut && total > terminal.columns;
  std::size_t left = terminal.columns;
  std::string out;
  for (const Span& span : line) {
    std::string text = terminal.interactive && !terminal.utf8 ? to_ascii(span.text) : span.text;
    const bool last = cut && width(text) >= left;
    if (last) text = fit(text + (width(text) == left ? " " : ""), left, terminal.utf8);
    const bool coloured = terminal.colour && span.tone != Tone::Plain && !text.empty();
    if (coloured) out += kOn.at(static_cast<std::size_t>(span.tone));
    out += text;
    if (coloured) out += kOff;
    if (last) break;
    left -= std::min(left, width(text));
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string render(const Page& page, const Terminal& terminal) {
  std::string out;
  for (const Line& line : page.lines()) out += render(line, terminal) + "\n";
  return out;
}

}  // namespace gpuhealth::cli
