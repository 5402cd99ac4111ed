// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gpuhealth::cli {
namespace {

constexpr char32_t kInvalid = 0xFFFFFFFF;

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const Range& r) { return c >= r.first && c <= r.last; });
}

// C0, DEL, C1; soft hyphen, zero-width and direction marks, line separators, overrides and isolates, byte-order mark,
// interlinear marks, tags (Unicode Technical Report 36, 3.3).
constexpr std::array<Range, 11> kUnsafe = {{{0x00, 0x1F},
                                            {0x7F, 0x9F},
                                            {0xAD, 0xAD},
                                            {0x61C, 0x61C},
                                            {0x200B, 0x200F},
                                            {0x2028, 0x202E},
                                            {0x2060, 0x206F},
                                            {0xFEFF, 0xFEFF},
                                            {0xFFF9, 0xFFFB},
                                            {0xFFFE, 0xFFFF},
                                            {0xE0000, 0xE0FFF}}};
// Wide and fullwidth blocks of EastAsianWidth.txt, joined where nothing narrow lies between.
constexpr std::array<Range, 10> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0xA4CF},
                                          {0xA960, 0xA97C},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x3FFFD}}};
constexpr std::array<Range, 7> kCombining = {{{0x300, 0x36F},
                                              {0x483, 0x489},
                                              {0x591, 0x5BD},
                                              {0x610, 0x61A},
                                              {0x64B, 0x65F},
                                              {0x1AB0, 0x1AFF},
                                              {0x20D0, 0x20FF}}};

// Takes one character from the front. An invalid sequence takes one byte and is kInvalid.
char32_t take(std::string_view& text) {
  const auto lead = static_cast<std::uint8_t>(text.front());
  std::size_t length = 1;
  char32_t c = lead;
  char32_t least = 0;
  if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, c = lead & 0x07U, least = 0x10000;
  } else if (lead >= 0xE0 && lead < 0xF0) {
    length = 3, c = lead & 0x0FU, least = 0x800;
  } else if (lead >= 0xC2 && lead < 0xE0) {
    length = 2, c = lead & 0x1FU, least = 0x80;
  } else if (lead >= 0x80) {
    text.remove_prefix(1);
    return kInvalid;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || (static_cast<std::uint8_t>(text[i]) & 0xC0U) != 0x80) {
      text.remove_prefix(1);
      return kInvalid;
    }
    c = (c << 6U) | (static_cast<std::uint8_t>(text[i]) & 0x3FU);
  }
  if (c < least || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
    text.remove_prefix(1);
    return kInvalid;
  }
  text.remove_prefix(length);
  return c;
}

std::size_t columns_of(char32_t c) {
  if (within(kCombining, c)) return 0;
  return within(kWide, c) ? 2 : 1;
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take(text);
    if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (c == kInvalid || within(kUnsafe, c)) {
      out += '?';
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) columns += columns_of(take(text));
  return columns;
}

std::string fit(std::string_view text, std::size_t columns, bool utf8) {
  if (width(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::string_view before = text;
    const std::size_t next = columns_of(take(text));
    if (used + next > columns - 1) break;
    used += next;
    out += before.substr(0, before.size() - text.size());
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + (utf8 ? "…" : "~");
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  if (columns == 0) return {std::string(text)};
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && width(line) + 1 + width(word) > columns) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string to_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t c = take(text);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c == kInvalid || columns_of(c) > 0) {
      out += '?';
    }
  }
  return out;
}

}  // namespace gpuhealth::cli
