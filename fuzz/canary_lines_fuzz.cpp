// SPDX-License-Identifier: Apache-2.0
// Any bytes as the lines of a canary worker's child, and as a file of results that is replayed: nothing that is said
// there confuses the reader, and what is taken, written again, reads the same.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "canary/gate.hpp"
#include "canary/worker/supervisor.hpp"
#include "cli/canary_results.hpp"
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpuhealth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto said = canary::parse_child_line(rest.substr(0, end));
    if (said.kind == canary::ChildLine::Kind::Measurement) {
      const auto line = canary::to_json_line(said.measurement);
      const auto again = canary::parse_measurement(line);
      require(again.has_value(), "what was written is a line");
      require(canary::to_json_line(*again) == line, "it reads the same");
      require(!said.measurement.value || std::isfinite(*said.measurement.value), "no number is infinite");
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto replayed = cli::replay(cli::parse_results(text, canary::Gate::Strong));
  for (const auto& b : replayed.baselines) require(!b.value || std::isfinite(*b.value), "a baseline is a number");
  return 0;
}
