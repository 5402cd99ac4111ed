// SPDX-License-Identifier: Apache-2.0
// What the full screen of `watch` shows: what is wrong, each GPU with short curves of what it did since the start, what
// was done last. Pure; cli/watch.hpp gives it keys and time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/machine.hpp"
#include "cli/page.hpp"

namespace gpuhealth::cli {

// One mark a value, the newest on the right, scaled to the least and greatest of those shown; a space where there was
// none. Values that differ by less than `least_span` are drawn as a flat line: noise is no curve.
std::string sparkline(std::span<const std::optional<double>> values, std::size_t columns, double least_span, bool utf8);

// The latest looks at each GPU. A GPU that is gone is forgotten; a look without a value leaves a gap.
class Trails {
 public:
  static constexpr std::size_t kMost = 240;  // looks that are kept: as many as a wide screen can show
  static constexpr std::size_t kMetrics = 4;
  void note(const Machine& machine);
  [[nodiscard]] std::span<const std::optional<double>> of(const std::string& device, std::size_t metric) const;

 private:
  using Trail = std::vector<std::optional<double>>;
  std::map<std::string, std::vector<Trail>> trails_;
};

Page render_watch(const Machine& machine, const Trails& trails, const Terminal& terminal);
Page render_watch_help();

enum class Key : std::uint8_t { Quit, Help, Up, Down, PageUp, PageDown, Top, Bottom, Redraw };
// Takes the keys from the front of `typed`; what may be the beginning of one stays. Other keys are passed over.
std::vector<Key> take_keys(std::string& typed);

// Which lines of a page are seen. `rows` is the room for them.
struct Scroll {
  std::size_t first = 0;
  bool move(Key key, std::size_t lines, std::size_t rows);  // false: not a key that scrolls
  void keep_within(std::size_t lines, std::size_t rows);    // after a resize, or when the page became shorter
};

// The seen part of `page`, empty lines up to `rows` - 1, and `foot` with where one is in the last row.
Page frame(const Page& page, Scroll& scroll, std::string_view foot, const Terminal& terminal);

}  // namespace gpuhealth::cli
