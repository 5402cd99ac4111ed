// SPDX-License-Identifier: Apache-2.0
#include "cli/json.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "cli/numbers.hpp"

namespace gpuhealth::cli {

Json number(double value) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (!std::isfinite(value)) return nullptr;
  if (value == std::round(value) && std::abs(value) <= exact) return static_cast<std::int64_t>(value);
  // 12 digits are more than any source has; what is beyond them came from our own arithmetic (3103 * 0.001).
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.12g", value);
  return std::strtod(digits.data(), nullptr);
}

Json time_or_null(WallTime time) {
  if (to_microseconds(time) == 0) return nullptr;
  const auto seconds = static_cast<std::time_t>(to_microseconds(time) / 1'000'000);
  std::tm tm{};
  gmtime_r(&seconds, &tm);
  std::array<char, 32> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &tm);
  return std::string(buffer.data(), size);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_reading(const Reading& reading) {
  const ReadingInfo* row = find_reading(reading.id);
  const bool has_value = reading.status == ReadingStatus::Valid || reading.status == ReadingStatus::Stale;
  Json out;
  out["value"] = has_value ? number(reading.value) : Json(nullptr);
  out["unit"] = row == nullptr ? "" : std::string(to_string(row->unit));
  out["status"] = to_string(reading.status);
  if (!has_value && reading.sys_errno != 0) {
    out["errno"] = reading.sys_errno;
    out["error"] = errno_name(reading.sys_errno);
  }
  return out;
}

std::string dump(const Json& json, bool pretty) {
  return json.dump(pretty ? 2 : -1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace gpuhealth::cli
