// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/automaton.hpp"

#include <deque>

namespace gpuhealth::klog {
namespace {

unsigned char lower(char c) {
  return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

}  // namespace

void Automaton::add(std::string_view word, std::uint16_t id) {
  if (word.empty()) return;
  words_.emplace_back(word, id);
  for (const char c : word) {
    auto& byte_class = class_of_[lower(c)];
    if (byte_class == 0) byte_class = static_cast<std::uint8_t>(classes_++);
  }
}

void Automaton::finish() {
  for (unsigned char c = 'A'; c <= 'Z'; ++c) class_of_[c] = class_of_[c | 0x20U];
  next_.assign(classes_, kNone);
  outputs_.assign(1, kNone);
  for (const auto& [word, id] : words_) {
    std::uint32_t state = 0;
    for (const char c : word) {
      const auto edge = state * classes_ + class_of_[lower(c)];
      if (next_[edge] == kNone) {
        next_[edge] = static_cast<std::uint32_t>(outputs_.size());
        outputs_.push_back(kNone);
        next_.resize(next_.size() + classes_, kNone);
      }
      state = next_[edge];
    }
    chain_.push_back({id, outputs_[state]});
    outputs_[state] = static_cast<std::uint32_t>(chain_.size() - 1);
  }
  // Breadth first: a state falls back to the longest word's beginning that its text ends with.
  std::vector<std::uint32_t> fall(outputs_.size(), 0);
  std::deque<std::uint32_t> waiting;
  for (std::uint32_t c = 0; c < classes_; ++c) {
    auto& to = next_[c];
    if (to == kNone)
      to = 0;
    else
      waiting.push_back(to);
  }
  while (!waiting.empty()) {
    const auto state = waiting.front();
    waiting.pop_front();
    // Its own words first, then those of the state it falls back to.
    if (outputs_[state] == kNone) {
      outputs_[state] = outputs_[fall[state]];
    } else if (outputs_[fall[state]] != kNone) {
      auto last = outputs_[state];
      while (chain_[last].next != kNone) last = chain_[last].next;
      chain_[last].next = outputs_[fall[state]];
    }
    for (std::uint32_t c = 0; c < classes_; ++c) {
      auto& to = next_[state * classes_ + c];
      const auto other = next_[fall[state] * classes_ + c];
      if (to == kNone) {
        to = other;
      } else {
        fall[to] = other;
        waiting.push_back(to);
      }
    }
  }
  words_.clear();
}

}  // namespace gpuhealth::klog
