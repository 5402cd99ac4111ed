// SPDX-License-Identifier: Apache-2.0
// Any bytes as what the compute driver tells, in any pieces.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "telemetry/kfd_events.hpp"

using namespace gpuhealth::telemetry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1U + data[0] % 16U;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  KfdEventLog whole;
  KfdEventLog pieces;
  whole.take({0, 3, 0, 0}, text, 0);
  for (std::size_t at = 0; at < text.size(); at += piece) pieces.take({0, 3, 0, 0}, text.substr(at, piece), 0);
  const auto a = whole.news(0);
  const auto b = pieces.news(0);
  if (size < 4096) require(a.has_value() == b.has_value(), "pieces are the same records");
  if (size < 4096 && a && b) require(a->items.size() == b->items.size() && a->lost == b->lost, "pieces lose nothing");
  if (a) {
    for (const auto& item : a->items) require(item.event.text.size() < 256, "a text is short");
  }
  (void)whole.news(61'000'000);
  (void)whole.news(200'000'000);
  return 0;
}
