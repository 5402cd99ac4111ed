// SPDX-License-Identifier: Apache-2.0
// Finds many words in one pass over a text (Aho-Corasick), letters in either case. A byte costs one table look-up,
// however many words there are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gpuhealth::klog {

class Automaton {
 public:
  // Not after finish(). Several words may have one id, and one word several.
  void add(std::string_view word, std::uint16_t id);
  void finish();

  // Calls `found` with the id of each word at each place where it ends.
  template <class Found>
  void run(std::string_view text, Found&& found) const {
    std::uint32_t state = 0;
    for (const char c : text) {
      state = next_[state * classes_ + class_of_[static_cast<unsigned char>(c)]];
      for (auto at = outputs_[state]; at != kNone; at = chain_[at].next) found(chain_[at].id);
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Output {
    std::uint16_t id;
    std::uint32_t next;
  };

  std::vector<std::pair<std::string_view, std::uint16_t>> words_;
  std::array<std::uint8_t, 256> class_of_{};  // 0: a byte that is in no word
  std::uint32_t classes_ = 1;
  std::vector<std::uint32_t> next_;     // state * classes_ + class
  std::vector<std::uint32_t> outputs_;  // head of a chain by state
  std::vector<Output> chain_;
};

}  // namespace gpuhealth::klog
