// SPDX-License-Identifier: Apache-2.0
#include "health/signs.hpp"

#include <algorithm>
#include <utility>

namespace gpuhealth::health {

void SignMemory::see(Sign sign, SignSeen seen) {
  constexpr std::size_t kMost = 64;
  if (sign == Sign::ResetBegan) {
    resets_.push_back(seen.at);
    if (resets_.size() > kMost) resets_.pop_front();
  }
  auto& last = last_.at(static_cast<std::size_t>(sign));
  if (!last || last->at <= seen.at) last = std::move(seen);
}

void SignMemory::forget_hangs_before(SteadyTime time) {
  for (const auto sign : {Sign::ResetFailed, Sign::Wedged, Sign::SchedulerHang, Sign::BusLost, Sign::SmuSilent}) {
    auto& last = last_.at(static_cast<std::size_t>(sign));
    if (last && last->at < time) last.reset();
  }
}

const SignSeen* SignMemory::last(Sign sign) const {
  const auto& seen = last_.at(static_cast<std::size_t>(sign));
  return seen ? &*seen : nullptr;
}

const SignSeen* SignMemory::recent(Sign sign, SteadyTime now, Duration window) const {
  const auto* const seen = last(sign);
  return seen != nullptr && now - seen->at <= window ? seen : nullptr;
}

bool SignMemory::unanswered(Sign a, Sign b) const {
  const auto* const first = last(a);
  const auto* const answer = last(b);
  return first != nullptr && (answer == nullptr || answer->at < first->at);
}

std::size_t SignMemory::resets(SteadyTime now, Duration window) const {
  return static_cast<std::size_t>(std::ranges::count_if(resets_, [&](SteadyTime at) { return now - at <= window; }));
}

}  // namespace gpuhealth::health
