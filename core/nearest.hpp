// SPDX-License-Identifier: Apache-2.0
// What somebody may have meant who typed something else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>

namespace gpuhealth {

// How many letters must be put in, taken out or replaced (Levenshtein), capitals and small ones taken as the same.
// Compares the first 64 letters of `typed`: it may be of any length.
std::size_t edits(std::string_view typed, std::string_view word);

// The candidate with the fewest edits, the first of equals; empty when none is near (two letters and more than a third
// of it wrong). Candidates are strings or string views.
template <std::ranges::input_range Candidates>
std::string nearest(std::string_view typed, const Candidates& candidates) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    if (const auto n = edits(typed, candidate); n < fewest) fewest = n, best = candidate;
  }
  return best;
}

}  // namespace gpuhealth
