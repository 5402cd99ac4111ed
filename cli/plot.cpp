// SPDX-License-Identifier: Apache-2.0
#include "cli/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cli/numbers.hpp"

namespace gpuhealth::cli {
namespace {

// Dots from the bottom left, on or off.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows) : columns_(columns), rows_(rows), dots_(columns * rows) {}
  void set(std::size_t x, std::size_t y) { dots_[y * columns_ + x] = true; }
  [[nodiscard]] bool get(std::size_t x, std::size_t y) const { return dots_[y * columns_ + x]; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }

 private:
  std::size_t columns_;
  std::size_t rows_;
  std::vector<bool> dots_;
};

std::string braille(unsigned bits) {  // U+2800 + bits in UTF-8
  const unsigned c = 0x2800U + bits;
  return {static_cast<char>(0xE0U | (c >> 12U)), static_cast<char>(0x80U | ((c >> 6U) & 0x3FU)),
          static_cast<char>(0x80U | (c & 0x3FU))};
}

// Row `row` from the top, 2 by 4 dots a character.
std::string braille_row(const Canvas& canvas, std::size_t row) {
  constexpr std::array<std::array<unsigned, 2>, 4> bits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  std::string out;
  for (std::size_t column = 0; column < canvas.columns() / 2; ++column) {
    unsigned c = 0;
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 2; ++x) {
        if (canvas.get(column * 2 + x, canvas.rows() - 1 - (row * 4 + y))) c |= bits.at(y).at(x);
      }
    }
    out += c == 0 ? " " : braille(c);
  }
  return out;
}

std::string ascii_row(const Canvas& canvas, std::size_t row) {
  std::string out;
  for (std::size_t x = 0; x < canvas.columns(); ++x) out += canvas.get(x, canvas.rows() - 1 - row) ? '*' : ' ';
  return out;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  [[nodiscard]] bool any() const { return low <= high; }
};

// The span of values in each column of dots.
std::vector<Extent> extents(const Series& series, std::size_t columns) {
  std::vector<Extent> out(columns);
  const double whole = static_cast<double>(std::max<std::int64_t>((series.until - series.since).count(), 1));
  for (const auto& p : series.points) {
    const double at = static_cast<double>((p.time - series.since).count()) / whole;
    if (at < 0 || at > 1) continue;
    auto& e = out[std::min(static_cast<std::size_t>(at * static_cast<double>(columns)), columns - 1)];
    e.low = std::min(e.low, p.min);
    e.high = std::max(e.high, p.max);
  }
  return out;
}

// How many empty columns lie between two points of a curve without a gap in time, plus a little slack.
std::size_t bridged(const Series& series, std::size_t columns) {
  std::vector<std::int64_t> distances;
  for (std::size_t i = 1; i < series.points.size(); ++i)
    distances.push_back((series.points[i].time - series.points[i - 1].time).count());
  if (distances.empty()) return 0;
  std::ranges::nth_element(distances, distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2));
  const double typical = static_cast<double>(distances[distances.size() / 2]);
  const double whole = static_cast<double>(std::max<std::int64_t>((series.until - series.since).count(), 1));
  return static_cast<std::size_t>(std::ceil(2 * typical / whole * static_cast<double>(columns)));
}

Canvas draw(const Series& series, const Axis& axis, std::size_t columns, std::size_t rows) {
  Canvas canvas(columns, rows);
  const auto spans = extents(series, columns);
  const std::size_t bridge = bridged(series, columns);
  const auto y_of = [&](double v) {
    const double at = std::clamp((v - axis.low) / (axis.high - axis.low), 0.0, 1.0);
    return static_cast<std::size_t>(std::lround(at * static_cast<double>(rows - 1)));
  };
  std::size_t last = columns;  // column of the last value
  for (std::size_t x = 0; x < columns; ++x) {
    if (!spans[x].any()) continue;
    std::size_t low = y_of(spans[x].low);
    std::size_t high = y_of(spans[x].high);
    if (last < x && x - last <= std::max<std::size_t>(bridge, 1)) {
      const std::size_t before_low = y_of(spans[last].low);
      const std::size_t before_high = y_of(spans[last].high);
      for (std::size_t between = last + 1; between < x; ++between) canvas.set(between, before_high);
      if (before_low > high) high = before_low - 1;
      if (before_high < low) low = before_high + 1;
    }
    for (std::size_t y = low; y <= high; ++y) canvas.set(x, y);
    last = x;
  }
  return canvas;
}

std::string left_pad(std::string text, std::size_t columns) {
  return text.size() < columns ? std::string(columns - text.size(), ' ') + text : text;
}

std::string axis_label(double value, Unit unit) {
  return unit == Unit::Byte ? format_bytes(value) : format_number(value);
}

// Which row each mark of the value axis stands at; empty labels elsewhere.
std::vector<std::string> value_labels(const Axis& axis, Unit unit, std::size_t rows) {
  std::vector<std::string> labels(rows);
  const auto steps = static_cast<int>(std::lround((axis.high - axis.low) / axis.step));
  for (int i = 0; i <= steps; ++i) {
    const double at = static_cast<double>(i) / steps;
    const auto row = rows - 1 - static_cast<std::size_t>(std::lround(at * static_cast<double>(rows - 1)));
    labels[row] = axis_label(axis.low + i * axis.step, unit);
  }
  return labels;
}

// Start, middle and end, at their places below the axis.
std::string time_labels(const Series& series, std::size_t columns) {
  const auto middle = series.since + (series.until - series.since) / 2;
  const std::string first = format_time_short(series.since, series.until);
  const std::string last = format_time_short(series.until, series.until);
  const std::string centre = format_time_short(middle, series.until);
  std::string out = first;
  const std::size_t centre_at = columns / 2 - std::min(columns / 2, centre.size() / 2);
  if (out.size() + 2 <= centre_at && centre_at + centre.size() + 2 + last.size() <= columns)
    out += std::string(centre_at - out.size(), ' ') + centre;
  if (out.size() + 1 + last.size() <= columns) out += std::string(columns - out.size() - last.size(), ' ') + last;
  return out;
}

}  // namespace

Axis choose_axis(double low, double high) {
  if (low == high) {
    const double margin = std::max(std::abs(low) * 0.05, 1.0);
    high = low + margin;
    low = low >= 0 ? std::max(low - margin, 0.0) : low - margin;
  }
  const double rough = (high - low) / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

Summary summarise(std::span<const store::HistoryPoint> points) {
  Summary s{std::numeric_limits<double>::infinity(), 0, -std::numeric_limits<double>::infinity(), 0};
  for (const auto& p : points) {
    s.min = std::min(s.min, p.min);
    s.max = std::max(s.max, p.max);
    s.mean += p.mean / static_cast<double>(points.size());
    s.last = p.mean;
  }
  return s;
}

std::vector<std::string> plot(const Series& series, PlotSize size, bool utf8) {
  if (series.points.empty()) return {};
  const Summary s = summarise(series.points);
  const Unit unit = series.metric == nullptr ? Unit::Count : series.metric->unit;
  double scale = 1;  // marks of a byte axis are round in its own unit
  while (unit == Unit::Byte && s.max / scale >= 1024) scale *= 1024;
  Axis axis = choose_axis(s.min / scale, s.max / scale);
  axis = {axis.low * scale, axis.high * scale, axis.step * scale};

  const std::size_t rows = std::max<std::size_t>(size.rows, 3);
  const auto labels = value_labels(axis, unit, rows);
  std::size_t margin = 0;
  for (const auto& label : labels) margin = std::max(margin, label.size());
  const std::size_t columns = std::max<std::size_t>(size.columns, margin + 2 + 20) - margin - 2;

  const Canvas canvas = draw(series, axis, utf8 ? columns * 2 : columns, utf8 ? rows * 4 : rows);
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < rows; ++row) {
    const bool marked = !labels[row].empty();
    const std::string edge = utf8 ? (marked ? " ┤" : " │") : (marked ? " +" : " |");
    lines.push_back(left_pad(labels[row], margin) + edge + (utf8 ? braille_row(canvas, row) : ascii_row(canvas, row)));
  }
  std::string floor(margin + 1, ' ');
  floor += utf8 ? "└" : "+";
  for (std::size_t i = 0; i < columns; ++i) floor += utf8 ? "─" : "-";
  lines.push_back(floor);
  lines.push_back(std::string(margin + 2, ' ') + time_labels(series, columns));
  return lines;
}

}  // namespace gpuhealth::cli
