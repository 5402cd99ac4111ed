// SPDX-License-Identifier: Apache-2.0
#include "health/windows.hpp"

#include <numeric>

namespace gpuhealth::health {
namespace {

constexpr std::int64_t kMinuteUs = 60'000'000;
constexpr std::int64_t kMinutesKept = 60;
constexpr std::size_t kLeastParts = 30;
constexpr std::size_t kMostParts = 4096;  // whatever the sampling period and the window

}  // namespace

void ShareWindow::add(double value, SteadyTime now, Duration width) {
  if (last_ && now > *last_) parts_.push_back({now, now - *last_, value});
  last_ = now;
  const auto too_old = [&] { return parts_.size() > kLeastParts && now - parts_.front().end >= width; };
  while (too_old() || parts_.size() > kMostParts) parts_.pop_front();
}

Duration ShareWindow::covered() const {
  return std::accumulate(parts_.begin(), parts_.end(), Duration{},
                         [](Duration sum, const Part& part) { return sum + part.length; });
}

std::optional<double> ShareWindow::share(Duration width) const {
  const auto seen = covered();
  if (seen * 2 < width || parts_.size() * 2 < kLeastParts) return std::nullopt;
  double sum = 0;
  for (const auto& part : parts_) sum += part.value * static_cast<double>(part.length.count());
  return sum / static_cast<double>(seen.count());
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
