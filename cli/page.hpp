// SPDX-License-Identifier: Apache-2.0
// What a command shows, before it is known where: lines of toned text. Text is made safe when it enters a page, so that
// nothing from hardware or bus can reach the terminal as a control character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/condition.hpp"

namespace gpuhealth::cli {

// Colours are for severity alone; Heading is bold.
enum class Tone : std::uint8_t { Plain, Heading, Good, Note, Warning, Critical };
Tone tone_of(Severity severity);

// Where a page goes. A pipe has no width: nothing is cut or wrapped, and nothing coloured unless asked for.
struct Terminal {
  bool interactive = false;
  bool colour = false;
  bool utf8 = false;
  std::size_t columns = 0;  // 0: no limit
  std::size_t rows = 0;     // 0: no limit
};

enum class ColourChoice : std::uint8_t { Auto, Always, Never };
// What file descriptor `fd` is, with NO_COLOR, TERM, COLUMNS/LINES and the locale taken into account.
Terminal detect_terminal(int fd, ColourChoice choice);

struct Span {
  Span(std::string_view unsafe, Tone a_tone = Tone::Plain);  // NOLINT(google-explicit-constructor): reads as text
  Span(const char* unsafe, Tone a_tone = Tone::Plain) : Span(std::string_view(unsafe), a_tone) {}
  Span(const std::string& unsafe, Tone a_tone = Tone::Plain) : Span(std::string_view(unsafe), a_tone) {}
  std::string text;
  Tone tone;
  bool whole = false;  // never cut: something to copy, such as an id; the terminal may break it
};
Span whole(std::string_view unsafe);
using Line = std::vector<Span>;

class Page {
 public:
  void line(Line spans = {}) { lines_.push_back(std::move(spans)); }
  // One paragraph, wrapped to `columns` (0: not wrapped), each line behind `indent` spaces.
  void paragraph(const Span& text, std::size_t indent, std::size_t columns);
  void append(const Page& other) { lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end()); }
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
};

enum class Align : std::uint8_t { Left, Right };
struct Column {
  std::string heading;
  Align align = Align::Left;
  bool flexible = false;  // gives way when the table is wider than the terminal
};
// Columns as wide as their cells, two spaces between, headings only where there are any.
void add_table(Page& page, const std::vector<Column>& columns, const std::vector<Line>& rows, const Terminal& terminal,
               std::size_t indent = 0);

// The bytes to write: colours added, lines cut to the terminal's width. Ends in a newline unless empty.
std::string render(const Page& page, const Terminal& terminal);
// One line without its newline.
std::string render(const Line& line, const Terminal& terminal);

}  // namespace gpuhealth::cli
