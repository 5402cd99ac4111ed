// SPDX-License-Identifier: Apache-2.0
#include "telemetry/kfd_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "telemetry/klog/origin.hpp"
#include "telemetry/parse.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr std::size_t kMostPiece = 4096;  // a record has at most 96 bytes
constexpr std::size_t kMostKept = 1024;   // folds and stopped queues; more of them are not followed
constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kQueuesBack = 30 * kSecond;  // the scheduler itself gives up after 9 s

// The next word up to `end`; the rest stays in `text`.
std::string_view word(std::string_view& text, char end) {
  const auto at = text.find(end);
  const auto out = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return out;
}

template <class T>
std::optional<T> number(std::string_view text, int base) {
  T out{};
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out, base);
  return error == std::errc{} && at == end && !text.empty() ? std::optional(out) : std::nullopt;
}

// "<time> -<pid> <node> <why>": of queues that are taken off or put back.
std::optional<KfdEvent> queues(KfdEventKind kind, std::string_view rest) {
  KfdEvent out{kind, 0, 0, 0, {}};
  const auto time = number<std::uint64_t>(word(rest, ' '), 10);
  auto who = word(rest, ' ');
  if (!time || !who.starts_with('-')) return std::nullopt;
  who.remove_prefix(1);
  const auto pid = number<std::uint32_t>(who, 10);
  const auto node = number<std::uint64_t>(word(rest, ' '), 16);
  if (!pid || !node) return std::nullopt;
  out.pid = *pid;
  if (kind == KfdEventKind::QueuesOff) out.number = number<std::uint64_t>(trimmed(rest), 10).value_or(~0ULL);
  return out;
}

std::string_view why_off(std::uint64_t trigger) {  // enum KFD_QUEUE_EVICTION_TRIGGERS
  constexpr std::array<std::string_view, 6> kWhy = {"its shared memory moves",
                                                    "its memory is used by the system",
                                                    "video memory is short",
                                                    "the machine sleeps",
                                                    "it is saved",
                                                    "it is restored"};
  return trigger < kWhy.size() ? kWhy.at(trigger) : std::string_view("for a reason that is not known here");
}
constexpr std::uint64_t kSleeps = 3;

klog::Type type_of(KfdEventKind kind) {
  switch (kind) {
    case KfdEventKind::PageFault:
      return klog::Type::PageFault;
    case KfdEventKind::Throttle:
      return klog::Type::ThermalThrottle;
    case KfdEventKind::ResetBegin:
      return klog::Type::GpuResetBegin;
    case KfdEventKind::ResetEnd:
      return klog::Type::GpuResetSucceeded;
    case KfdEventKind::QueuesOff:
      return klog::Type::QueueEvicted;
    case KfdEventKind::QueuesOn:
      break;
  }
  return klog::Type::QueueRestored;
}

std::string text_of(const KfdEvent& e) {
  switch (e.kind) {
    case KfdEventKind::PageFault:
      return "compute driver: page fault";
    case KfdEventKind::Throttle:
      return fmt::format("compute driver: throttled for the {}th time, reasons 0x{:x}", e.number, e.mask);
    case KfdEventKind::ResetBegin:
      return fmt::format("compute driver: reset {} begins{}{}", e.number, e.words.empty() ? "" : ": ", e.words);
    case KfdEventKind::ResetEnd:
      return fmt::format("compute driver: goes on after reset {}", e.number);
    case KfdEventKind::QueuesOff:
      return fmt::format("compute driver: queues of process {} taken off, {}", e.pid, why_off(e.number));
    case KfdEventKind::QueuesOn:
      break;
  }
  return fmt::format("compute driver: queues of process {} put back", e.pid);
}

// Words of others: a program may call itself anything.
std::string plain(std::string_view words) {
  std::string out(words.substr(0, 64));
  for (auto& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

KlogFrame::Item item_of(const PciAddress& gpu, klog::Type type, std::string text) {
  KlogFrame::Item item;
  item.event.type = type;
  item.event.severity = klog::info(type).severity;
  item.event.device = gpu;
  item.event.text = std::move(text);
  item.event.from = klog::Amd;
  item.gpu = gpu;
  return item;
}

}  // namespace

std::optional<KfdEvent> parse_kfd_event(std::string_view record) {
  auto rest = record;
  const auto id = number<unsigned>(word(rest, ' '), 16);
  if (!id) return std::nullopt;
  KfdEvent out;
  switch (*id) {
    case 1: {  // "<pid>:<program>"
      const auto pid = number<std::uint32_t>(word(rest, ':'), 16);
      if (!pid) return std::nullopt;
      out = {KfdEventKind::PageFault, 0, 0, *pid, plain(rest)};
      return out;
    }
    case 2: {  // "<mask>:<count>"
      const auto mask = number<std::uint64_t>(word(rest, ':'), 16);
      const auto count = number<std::uint64_t>(trimmed(rest), 16);
      if (!mask || !count) return std::nullopt;
      out = {KfdEventKind::Throttle, *count, *mask, 0, {}};
      return out;
    }
    case 3:
    case 4: {  // "<number>", since 6.12 "<number> <cause>"
      const auto reset = number<std::uint64_t>(trimmed(word(rest, ' ')), 16);
      if (!reset) return std::nullopt;
      out = {*id == 3 ? KfdEventKind::ResetBegin : KfdEventKind::ResetEnd, *reset, 0, 0, plain(trimmed(rest))};
      return out;
    }
    case 9:
      return queues(KfdEventKind::QueuesOff, rest);
    case 10:
      return queues(KfdEventKind::QueuesOn, rest);
    default:
      return std::nullopt;
  }
}

void KfdEventLog::take(const PciAddress& gpu, std::string_view bytes, std::int64_t now_us) {
  auto& piece = pieces_[gpu];
  piece += bytes;
  std::size_t begin = 0;
  for (auto end = piece.find('\n'); end != std::string::npos; end = piece.find('\n', begin)) {
    record(gpu, std::string_view(piece).substr(begin, end - begin), now_us);
    begin = end + 1;
  }
  piece.erase(0, begin);
  if (piece.size() > kMostPiece) piece.clear();
}

void KfdEventLog::record(const PciAddress& gpu, std::string_view line, std::int64_t now_us) {
  const auto event = parse_kfd_event(line);
  if (!event) return;
  count_missed(gpu, *event);
  follow_queues(gpu, *event, now_us);
  tell(gpu, *event, now_us);
}

// Resets are numbered: a gap is what the full queue dropped.
void KfdEventLog::count_missed(const PciAddress& gpu, const KfdEvent& event) {
  if (event.kind != KfdEventKind::ResetBegin) return;
  const auto [last, first] = resets_.try_emplace(gpu, event.number);
  if (!first && event.number > last->second + 1) missed_ += event.number - last->second - 1;
  last->second = event.number;
}

void KfdEventLog::follow_queues(const PciAddress& gpu, const KfdEvent& event, std::int64_t now_us) {
  const std::pair key(gpu, event.pid);
  if (event.kind == KfdEventKind::QueuesOn) off_.erase(key);
  if (event.kind == KfdEventKind::QueuesOff && event.number != kSleeps && off_.size() < kMostKept)
    off_.try_emplace(key, Off{now_us, event.number});
}

void KfdEventLog::tell(const PciAddress& gpu, const KfdEvent& event, std::int64_t now_us) {
  const auto type = type_of(event.kind);
  auto item = item_of(gpu, type, text_of(event));
  item.event.pid = event.pid;
  if (event.kind == KfdEventKind::PageFault) item.event.process = event.words;
  const bool folds = klog::info(type).fold_s > 0;
  const std::tuple key(gpu, type, event.pid);
  if (const auto fold = folds_.find(key); folds && fold != folds_.end()) {
    ++fold->second.more;
    fold->second.item = std::move(item);
    return;
  }
  if (folds && folds_.size() < kMostKept) folds_[key] = Fold{item, now_us, 0};
  news_.push_back(std::move(item));
}

void KfdEventLog::look_for_lost_queues(std::int64_t now_us) {
  std::erase_if(off_, [&](const auto& entry) {
    const auto& [key, off] = entry;
    if (now_us - off.since_us < kQueuesBack) return false;
    if (runs_ && !runs_(key.second)) return true;
    auto item = item_of(key.first, klog::Type::QueueEvictFailed,
                        fmt::format("compute driver: queues of process {} were taken off ({}) and are not back after "
                                    "{} s",
                                    key.second, why_off(off.why), kQueuesBack / kSecond));
    item.event.pid = key.second;
    news_.push_back(std::move(item));
    return true;
  });
}

std::optional<KlogFrame> KfdEventLog::news(std::int64_t now_us) {
  look_for_lost_queues(now_us);
  for (auto it = folds_.begin(); it != folds_.end();) {
    auto& fold = it->second;
    const bool over = now_us - fold.since_us >= kSecond * klog::info(std::get<1>(it->first)).fold_s;
    if (over && fold.more == 0) {
      it = folds_.erase(it);
      continue;
    }
    if (over) {
      fold.item.event.count = std::exchange(fold.more, 0);
      fold.since_us = now_us;  // a burst that goes on is told once a window
      news_.push_back(fold.item);
    }
    ++it;
  }
  if (news_.empty() && missed_ == 0) return std::nullopt;
  KlogFrame frame;
  frame.items = std::exchange(news_, {});
  frame.lost = std::exchange(missed_, 0);
  return frame;
}

}  // namespace gpuhealth::telemetry
