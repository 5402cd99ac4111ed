// SPDX-License-Identifier: Apache-2.0
#include "daemon/room_options.hpp"

#include <algorithm>
#include <cmath>

namespace gpuhealth::daemon {

using std::chrono::milliseconds;

milliseconds real(const Options& options, std::int64_t ms) {
  return milliseconds(std::max<std::int64_t>(1, std::llround(static_cast<double>(ms) / options.speed)));
}

store::Options store_options(const Options& options, const Settings& s) {
  using days = std::chrono::days;
  store::Options out;
  out.path = options.state_dir + "/history.db";
  out.size_cap_bytes = static_cast<std::uint64_t>(s.history_size);
  out.fine_for = days(s.history_fine);
  out.medium_for = days(s.history_medium);
  out.coarse_for = days(s.history_coarse);
  out.events_for = days(s.history_coarse);
  return out;
}

telemetry::ReaderPool::Options pool_options(const Options& options, const Settings& s) {
  telemetry::ReaderPool::Options out;
  out.program = options.reader;
  out.sysroot = options.sysroot;
  // Reads take real time: on a fast clock they are still given a fair chance.
  out.patience = std::max(milliseconds(50), real(options, s.sampling_patience));
  out.deadline = std::max(milliseconds(1500), real(options, s.sampling_deadline));
  for (auto* wait : {&out.first_retry, &out.last_retry, &out.calm}) *wait = real(options, wait->count());
  return out;
}

}  // namespace gpuhealth::daemon
