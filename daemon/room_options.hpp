// SPDX-License-Identifier: Apache-2.0
// What the configuration means to the rooms that the daemon wires together.
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/config.hpp"
#include "daemon/daemon.hpp"
#include "store/database.hpp"
#include "telemetry/reader_pool.hpp"

namespace gpuhealth::daemon {

// What a span of the daemon's clock takes in real time; 1 ms at least.
std::chrono::milliseconds real(const Options& options, std::int64_t ms);
store::Options store_options(const Options& options, const Settings& settings);
telemetry::ReaderPool::Options pool_options(const Options& options, const Settings& settings);

}  // namespace gpuhealth::daemon
