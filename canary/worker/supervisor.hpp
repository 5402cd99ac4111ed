// SPDX-License-Identifier: Apache-2.0
// The process that stays well: starts the child, reads what it says, holds it to its deadlines, knows who else was on
// the GPU, and says of a child that died, hangs or cannot be killed what is known of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "canary/worker/child.hpp"

namespace gpuhealth::canary {

struct RunReport {
  std::vector<Measurement> lines;  // every metric of every canary that was asked for, in order
  bool stuck = false;              // a child is left behind
};
// `progress`: a canary begins. Blocks for as long as the run takes.
RunReport supervise(const RunOptions& options, const std::function<void(const std::string& canary)>& progress);

// What a child said, line by line; nothing that it can say confuses the parent.
struct ChildLine {
  enum class Kind : std::uint8_t { Nothing, Measurement, Start, End, Device, Foreign, Wait, Cpu, Done, Garbage } kind{};
  std::string word;
  Measurement measurement;
};
ChildLine parse_child_line(std::string_view line);

}  // namespace gpuhealth::canary
