// SPDX-License-Identifier: Apache-2.0
// The table of what NVML is asked, and which readings the answers are.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/reading.hpp"
#include "core/throttle.hpp"
#include "telemetry/nvml_api.hpp"

namespace gpuhealth::telemetry::nvml {

enum class Pace : std::uint8_t { Fast, Slow };  // every sample, or every slow one

// Where a query puts what it found; a reading that it does not name is unsupported.
class Answers {
 public:
  virtual ~Answers() = default;
  virtual void value(ReadingId id, double value, double low, double high) = 0;
  virtual void failed(ReadingId id, int code) = 0;  // an NVML code; for a function that is not there kFunctionNotFound
};

struct Query {
  std::string_view name;  // what progress says while it runs
  Pace pace;
  void (*ask)(const Api& api, Device device, Answers& out);
};
std::span<const Query> all_queries();

// Nothing where the driver does not tell them.
std::optional<ThrottleSet> throttle_reasons(const Api& api, Device device);

}  // namespace gpuhealth::telemetry::nvml
