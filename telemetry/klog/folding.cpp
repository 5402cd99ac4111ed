// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/folding.hpp"

#include <algorithm>
#include <utility>

namespace gpuhealth::klog {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kEchoUs = 10 * kSecond;        // how long after an event other lines say it again
constexpr std::int64_t kTentativeUs = 120 * kSecond;  // blocks that do not come up after a reset take their time-outs
constexpr std::int64_t kDoubtUs = 2 * kSecond;        // how long a line without a device waits for one that names it
constexpr std::uint64_t kEchoLines = 40;              // the same where lines carry no time
constexpr std::uint64_t kFoldLines = 500;
constexpr std::size_t kMostOpen = 256;

// What two lines of one type are about: the same, or one does not say.
bool compatible(const std::optional<PciAddress>& a, const std::optional<PciAddress>& b) {
  return !a || !b || *a == *b;
}

bool counts_by_subject(Type type) {
  switch (type) {
    case Type::InitFailed:
    case Type::GpuResetFailed:
    case Type::GpuResetSucceeded:
    case Type::MesHang:
    case Type::HwsHang:
    case Type::GpuException:
      return false;
    default:
      return true;
  }
}

bool within(const Folding::Place& earlier, const Folding::Place& later, std::int64_t us, std::uint64_t lines) {
  if (const auto passed = microseconds_between(earlier.stamp, later.stamp)) return *passed <= us && *passed >= -kSecond;
  return later.line - earlier.line <= lines;
}

}  // namespace

Folding::Open* Folding::find(const Event& event, Weight weight, const Place& place) {
  const auto fold_us = static_cast<std::int64_t>(info(event.type).fold_s) * kSecond;
  for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
    auto& open = *it;
    if (open.event.type != event.type || !compatible(open.event.device, event.device)) continue;
    const bool again = weight == Weight::Echo || weight == Weight::Head || open.weight == Weight::Echo ||
                       open.weight == Weight::Tentative;
    if (counts_by_subject(event.type) && open.event.subject != event.subject && !again) continue;
    const bool same_device = open.event.device == event.device;
    if (fold_us == 0 && weight == Weight::Head && open.weight == Weight::Head) continue;
    const auto patience = open.weight == Weight::Tentative ? kTentativeUs : kEchoUs;
    if (again && within(open.last, place, patience, kEchoLines)) return &open;
    // The steps of coming up wait for each other's time-outs.
    const auto doubt_us = event.type == Type::InitFailed ? kEchoUs : kDoubtUs;
    const auto limit = same_device ? fold_us : std::min(fold_us, doubt_us);
    if (limit > 0 && within(open.last, place, limit, same_device ? kFoldLines : kEchoLines)) return &open;
  }
  return nullptr;
}

// The later line is the one to show; what it does not say stays.
void Folding::take_over(Open& open, Event&& event) {
  event.count = open.event.count;
  if (!event.device) event.device = open.event.device;
  if (event.process.empty()) {
    event.process = std::move(open.event.process);
    event.pid = open.event.pid;
  }
  if (event.subject.empty()) event.subject = std::move(open.event.subject);
  event.severity = std::max(event.severity, open.event.severity);
  open.event = std::move(event);
}

// A reset that failed after all: its "succeeded, trying to resume" was none.
void Folding::withdraw(const Event& failure, const Place& place) {
  std::erase_if(open_, [&](const Open& open) {
    return open.weight == Weight::Tentative && open.told == 0 && compatible(open.event.device, failure.device) &&
           within(open.first, place, kTentativeUs, kFoldLines);
  });
}

void Folding::add(Event event, Weight weight, const Place& place) {
  if (event.type == Type::GpuResetFailed) withdraw(event, place);
  auto* const open = find(event, weight, place);
  if (open == nullptr) {
    if (open_.size() >= kMostOpen) {
      close(std::move(open_.front()));
      open_.erase(open_.begin());
    }
    const bool doubtful = weight == Weight::Tentative || weight == Weight::Echo || !event.device;
    open_.push_back({std::move(event), weight, place, place, 0, doubtful});
    return;
  }
  open->last = place;
  const bool names_device = event.device && !open->event.device;
  const bool first_real = open->weight == Weight::Echo || open->weight == Weight::Tentative;
  if (weight == Weight::Line && !first_real) ++open->event.count;
  if (weight == Weight::Head && open->weight == Weight::Head) ++open->event.count;
  // A line that leaves the device out is not the one to show beside a device.
  const bool keeps_device = event.device.has_value() || !open->event.device;
  if (names_device || (weight == Weight::Head && open->weight != Weight::Head && keeps_device) ||
      (weight == Weight::Line && first_real && keeps_device)) {
    take_over(*open, std::move(event));
  } else {
    open->event.severity = std::max(open->event.severity, event.severity);
  }
  if (weight != Weight::Echo && (first_real || weight == Weight::Head)) open->weight = weight;
  if (open->event.device && open->weight != Weight::Tentative) open->doubtful = false;
}

void Folding::name_process(const std::optional<PciAddress>& device, std::string_view process, std::uint32_t pid,
                           const Place& place) {
  for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
    auto& event = it->event;
    const bool concerns = event.type == Type::RingTimeout || event.type == Type::PageFault ||
                          event.type == Type::RingRecovered || event.type == Type::GpuException;
    if (!concerns || !compatible(event.device, device) || !within(it->last, place, kDoubtUs, 4)) continue;
    if (event.pid == 0) {
      event.process = process;
      event.pid = pid;
    }
    return;
  }
}

void Folding::close(Open&& open) {
  if (open.told < open.event.count) {
    Event news = open.event;
    news.count = open.event.count - open.told;
    news_.push_back(std::move(news));
  }
  closed_.push_back(std::move(open.event));
}

void Folding::advance(const Place& now) {
  std::erase_if(open_, [&](Open& open) {
    auto patience = std::max(static_cast<std::int64_t>(info(open.event.type).fold_s) * kSecond, kEchoUs);
    if (open.weight == Weight::Tentative) patience = kTentativeUs;
    if (within(open.last, now, patience, kFoldLines)) {
      if (open.doubtful && open.weight != Weight::Tentative && !within(open.first, now, kDoubtUs, kEchoLines))
        open.doubtful = false;
      return false;
    }
    close(std::move(open));
    return true;
  });
}

void Folding::finish() {
  for (auto& open : open_) close(std::move(open));
  open_.clear();
}

std::vector<Event> Folding::take_closed() {
  return std::exchange(closed_, {});
}

std::vector<Event> Folding::take_news() {
  for (auto& open : open_) {
    if (open.doubtful || open.told > 0) continue;
    news_.push_back(open.event);
    open.told = open.event.count;
  }
  closed_.clear();
  return std::exchange(news_, {});
}

}  // namespace gpuhealth::klog
