// SPDX-License-Identifier: Apache-2.0
// Any bytes, in any pieces, as what goes between the daemon and a reader. What is taken, written again, reads the same.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/require.hpp"
#include "telemetry/frame.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::telemetry;
using Bytes = std::vector<std::uint8_t>;

// Of bytes that were written by us: writing is a function of what was read, so that equal bytes are equal frames.
Bytes written(const Frame& frame) {
  Bytes out;
  std::visit([&](const auto& f) { append_frame(out, f); }, frame);
  return out;
}

void check_again(const Frame& frame) {
  const auto once = written(frame);
  FrameParser parser;
  parser.feed(once);
  const auto again = parser.next();
  require(again && again->has_value(), "what was written is a frame");
  require((*again)->index() == frame.index() && written(**again) == once, "it reads the same");
  const auto end = parser.next();
  require(end && !end->has_value(), "and nothing follows");
}

// Feeds pieces whose lengths are the first bytes of the input.
void check_frames(std::span<const std::uint8_t> pieces, std::span<const std::uint8_t> bytes) {
  FrameParser parser;
  std::size_t piece = 0;
  while (!bytes.empty()) {
    const std::size_t wish = pieces.empty() ? bytes.size() : pieces[piece++ % pieces.size()] + std::size_t{1};
    const auto n = std::min(wish, bytes.size());
    parser.feed(bytes.first(n));
    bytes = bytes.subspan(n);
    for (;;) {
      const auto frame = parser.next();
      if (!frame) {
        require(!parser.next(), "after an error it gives no more");
        return;
      }
      if (!*frame) break;
      check_again(**frame);
    }
  }
}

void check_requests(std::span<const std::uint8_t> bytes) {
  Bytes rest(bytes.begin(), bytes.end());
  for (;;) {
    const auto before = rest.size();
    const auto request = take_request(rest);
    if (!request || !*request) {
      require(rest.size() == before, "what was not taken stays");
      return;
    }
    require(rest.size() < before, "what was taken goes");
    Bytes once;
    append_request(once, **request);
    const Bytes copy = once;
    const auto again = take_request(once);
    require(again && *again && once.empty(), "what was written is a request");
    Bytes twice;
    append_request(twice, **again);
    require(copy == twice, "it reads the same");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  check_requests(bytes);
  check_frames({}, bytes);
  constexpr std::size_t kPieces = 4;
  if (size >= kPieces) check_frames(bytes.first(kPieces), bytes.subspan(kPieces));
  return 0;
}
