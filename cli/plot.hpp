// SPDX-License-Identifier: Apache-2.0
// A curve in characters: braille dots (2 by 4 a character) or, where there is no UTF-8, one mark a character. Each
// column spans from the least to the greatest value of its time, so that a short spike is never averaged away.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/reading.hpp"
#include "store/database.hpp"

namespace gpuhealth::cli {

struct Series {
  std::string device;  // id
  std::string pci;
  std::string label;  // "Radeon RX 7900 XTX at 0000:03:00.0"
  const ReadingInfo* metric = nullptr;
  WallTime since;
  WallTime until;
  std::vector<store::HistoryPoint> points;
};

struct PlotSize {
  std::size_t columns = 80;  // the whole picture, axis included
  std::size_t rows = 10;     // the curve alone
};

// Ends of an axis that holds [low, high], and the distance of its marks: 1, 2 or 5 times a power of ten.
struct Axis {
  double low = 0;
  double high = 0;
  double step = 0;
};
Axis choose_axis(double low, double high);

// The curve with its value axis on the left and its time axis below. Empty without points.
std::vector<std::string> plot(const Series& series, PlotSize size, bool utf8);

struct Summary {
  double min = 0;
  double mean = 0;
  double max = 0;
  double last = 0;
};
// Meaningful with at least one point.
Summary summarise(std::span<const store::HistoryPoint> points);

}  // namespace gpuhealth::cli
