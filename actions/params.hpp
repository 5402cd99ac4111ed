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
#include "core/units.hpp"

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
  [[nodiscard]] std::optional<units::Window> window(std::string_view name) const;  // null: any time

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace gpuhealth::actions
