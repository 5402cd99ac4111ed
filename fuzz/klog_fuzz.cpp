// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kernel log, offline and live.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "fuzz/require.hpp"
#include "telemetry/klog/classifier.hpp"

namespace {

using namespace gpuhealth::klog;

void check_line(std::string_view text) {
  const auto line = parse_line(text);
  require(line.message.size() <= text.size(), "a message is a part of its line");
  const auto origin = parse_origin(line.message);
  require(origin.text.size() <= line.message.size(), "what is said is a part of the message");
  (void)strip_escapes(text);
}

void check_live(std::string_view log) {
  Classifier live;
  std::uint64_t number = 0;
  std::uint64_t told = 0;
  while (!log.empty()) {
    const auto text = log.substr(0, log.find('\n'));
    log.remove_prefix(text.size() == log.size() ? text.size() : text.size() + 1);
    live.learn(text);
    live.feed(text, ++number);
    for (const auto& event : live.take_news()) told += event.count;
  }
  live.finish();
  for (const auto& event : live.take_news()) told += event.count;
  require(told <= 3 * number, "a line tells at most what a row, a report and a trace see in it");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto copy = std::make_unique<char[]>(size);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::string_view text(copy.get(), size);
  check_line(text);
  std::uint64_t last = 0;
  for (const auto& event : classify(text)) {
    require(event.line >= last && event.line != 0, "events stand in the order of the log");
    require(event.count > 0, "an event has happened");
    require(event.type != Type::Count, "an event has a type");
    last = event.line;
  }
  check_live(text);
  return 0;
}
