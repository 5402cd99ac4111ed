// SPDX-License-Identifier: Apache-2.0
#include "store/queue.hpp"

#include <algorithm>
#include <utility>

namespace gpuhealth::store {
namespace {

bool is_sample(const Work& work) {
  return std::holds_alternative<Sample>(work);
}

}  // namespace

template <class Chosen>
void Queue::drop_first(Chosen chosen) {
  const auto it = std::ranges::find_if(work_, chosen);
  if (it == work_.end()) return;
  if (is_sample(*it)) --samples_;
  work_.erase(it);
  ++dropped_;
}

void Queue::put(Work work, bool in_front) {
  if (is_sample(work)) ++samples_;
  if (in_front)
    work_.push_front(std::move(work));
  else
    work_.push_back(std::move(work));
}

void Queue::push(Work work) {
  if (const auto* condition = std::get_if<Condition>(&work)) {
    const auto same = std::ranges::find_if(work_, [&](const Work& other) {
      const auto* waiting = std::get_if<Condition>(&other);
      return waiting != nullptr && waiting->id == condition->id;
    });
    if (same != work_.end()) {
      *same = std::move(work);
      return;
    }
  }
  put(std::move(work), false);
  if (samples_ > kMostSamples) drop_first(is_sample);
  if (work_.size() - samples_ > kMostRecords) {
    drop_first([](const Work& w) { return !is_sample(w) && !std::holds_alternative<Condition>(w); });
    // Nothing but conditions, thousands of them: then their oldest.
    if (work_.size() - samples_ > kMostRecords) drop_first([](const Work& w) { return !is_sample(w); });
  }
}

std::optional<Work> Queue::pop() {
  if (work_.empty()) return std::nullopt;
  Work work = std::move(work_.front());
  work_.pop_front();
  if (is_sample(work)) --samples_;
  return work;
}

bool Queue::push(Query query) {
  if (queries_.size() >= kMostQueries) return false;
  queries_.push_back(std::move(query));
  return true;
}

std::optional<Query> Queue::pop_query() {
  if (queries_.empty()) return std::nullopt;
  Query query = std::move(queries_.front());
  queries_.pop_front();
  return query;
}

void Queue::drop_all() {
  dropped_ += work_.size();
  work_.clear();
  samples_ = 0;
}

}  // namespace gpuhealth::store
