// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.hpp"

#include <numeric>
#include <vector>

namespace gpuhealth {
namespace {

constexpr std::size_t kLongest = 64;

char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::size_t edits(std::string_view typed, std::string_view word) {
  typed = typed.substr(0, kLongest);
  std::vector<std::size_t> row(word.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < typed.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < word.size(); ++j) {
      const std::size_t replaced = diagonal + (small(typed[i]) == small(word[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace gpuhealth
