// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/numbers.hpp"
#include "cli/report.hpp"
#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 240;
constexpr double kLeft = 58;
constexpr double kRight = 12;
constexpr double kTop = 22;
constexpr double kBottom = 26;
constexpr std::size_t kStyles = 6;  // classes c0 … c5 of the page

struct Frame {
  WallTime since, until;
  double low = 0, high = 1;
  bool log = false;

  [[nodiscard]] double x(WallTime t) const {
    const double all = static_cast<double>((until - since).count());
    const double part = static_cast<double>((t - since).count());
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(all > 0 ? part / all : 0, 0.0, 1.0);
  }
  [[nodiscard]] double y(double v) const {
    const double part =
        log ? (std::log2(v) - std::log2(low)) / (std::log2(high) - std::log2(low)) : (v - low) / (high - low);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * std::clamp(part, 0.0, 1.0);
  }
};

std::string text_at(double x, double y, const char* anchor, const std::string& said) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, html_text(said));
}

std::string grid(const Frame& f, const std::vector<std::pair<double, std::string>>& marks) {
  std::string out;
  for (const auto& [value, said] : marks) {
    out += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                       kWidth - kRight, f.y(value), f.y(value));
    out += text_at(kLeft - 6, f.y(value) + 4, "end", said);
  }
  for (int i = 0; i <= 4; ++i) {
    const auto time = f.since + (f.until - f.since) * i / 4;
    const char* anchor = i == 0 ? "start" : i == 4 ? "end" : "middle";
    const auto full = format_time(time);  // "2026-11-30 14:02:07"
    const auto said = f.until - f.since > std::chrono::hours(48) ? full.substr(5, 11) : full.substr(11, 5);
    const auto label = text_at(f.x(time), kHeight - 8, anchor, said);
    // A phone has no room for all five.
    out += i % 2 == 1 ? "<g class=\"often\">" + label + "</g>" : label;
  }
  return out;
}

std::string change_marks(const Frame& f, const std::vector<KernelChange>& changes) {
  std::string out;
  double last = -1000;
  for (const auto& c : changes) {
    const double x = f.x(c.time);
    if (c.time < f.since || c.time > f.until || x - last < 4) continue;
    last = x;
    const bool right = x > kWidth * 0.7;
    out += fmt::format("<line class=\"change\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", x, x, kTop,
                       kHeight - kBottom);
    out += "<g class=\"changed\">" +
           text_at(right ? x - 4 : x + 4, kTop - 6, right ? "end" : "start", "kernel " + c.after) + "</g>";
  }
  return out;
}

std::string begin(const std::string& id, const std::string& title, const std::string& text) {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-labelledby=\"{}-t {}-d\"><title id=\"{}-t\">{}</title>"
      "<desc id=\"{}-d\">{}</desc>",
      kWidth, kHeight, id, id, id, html_text(title), id, html_text(text));
}

// A gap of many buckets is a gap: a sleeping GPU, a machine that was off.
std::vector<std::vector<store::HistoryPoint>> pieces(const Series& s) {
  std::vector<Duration> steps;
  for (std::size_t i = 1; i < s.points.size(); ++i) steps.push_back(s.points[i].time - s.points[i - 1].time);
  std::ranges::sort(steps);
  const Duration usual = steps.empty() ? Duration(0) : steps[steps.size() / 2];
  std::vector<std::vector<store::HistoryPoint>> out;
  for (const auto& p : s.points) {
    if (out.empty() || p.time - out.back().back().time > usual * 4 + std::chrono::seconds(30)) out.emplace_back();
    out.back().push_back(p);
  }
  return out;
}

std::string band_and_line(const Frame& f, const Series& s, std::size_t style) {
  std::string out;
  for (const auto& piece : pieces(s)) {
    std::string up;
    std::string down;
    std::string mean;
    for (const auto& p : piece) {
      up += fmt::format("{:.1f},{:.1f} ", f.x(p.time), f.y(p.max));
      down.insert(0, fmt::format("{:.1f},{:.1f} ", f.x(p.time), f.y(p.min)));
      mean += fmt::format("{:.1f},{:.1f} ", f.x(p.time), f.y(p.mean));
    }
    if (piece.size() == 1) {
      out += fmt::format("<circle class=\"dot c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>", style, f.x(piece[0].time),
                         f.y(piece[0].mean));
      continue;
    }
    out += fmt::format("<polygon class=\"band c{}\" points=\"{}{}\"/><polyline class=\"line c{}\" points=\"{}\"/>",
                       style, up, down, style, mean);
  }
  return out;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : clean(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_of(const std::vector<Series>& series, const std::vector<KernelChange>& changes, const std::string& id) {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  std::string said;
  for (const auto& s : series) {
    const auto sum = summarise(s.points);
    low = std::min(low, sum.min);
    high = std::max(high, sum.max);
    said += fmt::format("{}{}: least {}, mean {}, greatest {}", said.empty() ? "" : "; ", s.metric->name,
                        format_value(sum.min, s.metric->unit), format_value(sum.mean, s.metric->unit),
                        format_value(sum.max, s.metric->unit));
  }
  if (!(low <= high)) return {};
  const Axis axis = choose_axis(low, high);
  const Frame f{series.front().since, series.front().until, axis.low, axis.high, false};
  std::vector<std::pair<double, std::string>> marks;
  for (double v = axis.low; v <= axis.high + axis.step / 2 && marks.size() < 12; v += axis.step)
    marks.emplace_back(v, format_value(v, series.front().metric->unit));
  std::string out = begin(id, series.front().label, said) + grid(f, marks);
  for (std::size_t i = 0; i < series.size(); ++i) out += band_and_line(f, series[i], i % kStyles);
  return out + change_marks(f, changes) + "</svg>";
}

std::string svg_of(const std::vector<RatioCurve>& curves, WallTime since, WallTime until,
                   const std::vector<KernelChange>& changes, const std::string& id) {
  double low = 1;
  double high = 1;
  std::string said;
  for (const auto& c : curves) {
    double worst = 0;
    for (const auto& p : c.points) {
      low = std::min(low, p.slower);
      high = std::max(high, p.slower);
      worst = std::max(worst, p.slower);
    }
    said += fmt::format("{}{}: at worst {:.2f} times", said.empty() ? "" : "; ", c.name, worst);
  }
  if (!(high > 0) || !(low > 0)) return {};
  // Doublings, so that 1.1 times and 42 times are both seen.
  Frame f{since, until, std::exp2(std::floor(std::log2(low) - 0.2)), std::exp2(std::ceil(std::log2(high) + 0.2)), true};
  std::vector<std::pair<double, std::string>> marks;
  const double step = std::log2(f.high / f.low) > 8 ? 4 : 2;
  for (double v = f.low; v <= f.high * 1.001; v *= step) marks.emplace_back(v, fmt::format("{:g}x", v));
  std::string out = begin(id, "How many times slower than at first", said) + grid(f, marks);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string line;
    for (const auto& p : curves[i].points) {
      line += fmt::format("{:.1f},{:.1f} ", f.x(p.time), f.y(p.slower));
      if (curves[i].points.size() < 60)
        out += fmt::format("<circle class=\"dot c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>", i % kStyles, f.x(p.time),
                           f.y(p.slower));
    }
    out += fmt::format("<polyline class=\"line c{}\" points=\"{}\"/>", i % kStyles, line);
  }
  return out + change_marks(f, changes) + "</svg>";
}

}  // namespace gpuhealth::cli
