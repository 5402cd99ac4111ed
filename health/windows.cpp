// SPDX-License-Identifier: Apache-2.0
#include "health/windows.hpp"

namespace gpuhealth::health {
namespace {

constexpr std::int64_t kMinuteUs = 60'000'000;
constexpr std::int64_t kMinutesKept = 60;
constexpr std::size_t kMostParts = 4096;  // whatever the sampling period and the window

}  // namespace

void ShareWindow::add(double value, SteadyTime now, Duration width) {
  if (last_ && now > *last_) parts_.push_back({now, now - *last_, value});
  last_ = now;
  while (!parts_.empty() && (now - parts_.front().end >= width || parts_.size() > kMostParts)) parts_.pop_front();
}

std::optional<double> ShareWindow::share(Duration width) const {
  double covered = 0;
  double sum = 0;
  for (const auto& part : parts_) {
    const auto length = static_cast<double>(part.length.count());
    covered += length;
    sum += part.value * length;
  }
  if (covered <= 0 || covered * 2 < static_cast<double>(width.count())) return std::nullopt;
  return sum / covered;
}

void CounterWindow::add(double count, SteadyTime now) {
  const auto minute = now.us / kMinuteUs;
  while (!minutes_.empty() && minutes_.front().number <= minute - kMinutesKept) {
    rise_ -= minutes_.front().rise;
    minutes_.pop_front();
  }
  if (minutes_.empty()) rise_ = 0;
  const double rise = last_ && count > *last_ ? count - *last_ : 0;
  last_ = count;
  if (rise <= 0) return;
  rise_ += rise;
  if (minutes_.empty() || minutes_.back().number != minute) minutes_.push_back({minute, 0});
  minutes_.back().rise += rise;
}

}  // namespace gpuhealth::health
