// SPDX-License-Identifier: Apache-2.0
// The fields of a card's state by the names that scenarios use; docs/simulator.md is checked against this table.
#pragma once

#include <span>
#include <string_view>

#include "sim/card.hpp"

namespace gpuhealth::sim {

struct StateField {
  std::string_view name;
  std::string_view unit;
  double low = 0;
  double high = 0;
  void (*set)(CardState&, double);
  double (*get)(const CardState&);
};

std::span<const StateField> all_state_fields();
const StateField* find_state_field(std::string_view name);

}  // namespace gpuhealth::sim
