// SPDX-License-Identifier: Apache-2.0
// What an action was told, checked against core/action.def and typed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/action.hpp"
#include "core/error.hpp"

namespace gpuhealth::actions {

class Params {
 public:
  // Unknown names, values of the wrong kind and lacking ones are errors that name what would be right.
  static Result<Params> read(const ActionRequest& request);

  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> words(std::string_view name) const;
  [[nodiscard]] std::chrono::milliseconds span(std::string_view name) const;
  [[nodiscard]] std::uint64_t bytes(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

std::optional<std::chrono::milliseconds> span_from(std::string_view text);  // "500ms", "30s", "5m", "2h", "1d"
std::optional<std::uint64_t> bytes_from(std::string_view text);             // "65536", "64KiB", "64MiB", "1GiB"
// "02:00-05:00", over midnight too. Null for what is none.
std::optional<bool> within_window(std::string_view window, int minute_of_day);

}  // namespace gpuhealth::actions
