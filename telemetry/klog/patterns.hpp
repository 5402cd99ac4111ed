// SPDX-License-Identifier: Apache-2.0
// The table of wordings (patterns.def) and how a line finds its row: one automaton looks for a piece of every pattern
// at once, and only rows whose piece was seen are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/pci.hpp"
#include "telemetry/klog/origin.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::klog {

enum class Weight : std::uint8_t {
  Line,       // one more occurrence
  Head,       // one more, and the line to show
  Echo,       // says again what another line said
  Tentative,  // true unless a later line says otherwise
  Quiet,      // looks like an event and is none
};

struct PatternRow {
  Type type{};
  Severity severity = Severity::Warning;
  std::uint16_t from = 0;
  Weight weight = Weight::Line;
  std::string_view pattern;
  std::string_view source;
};
std::span<const PatternRow> all_patterns();

struct XidInfo {
  unsigned number = 0;
  Severity severity = Severity::Warning;
  std::string_view text;
};
std::span<const XidInfo> all_xids();
Severity xid_severity(unsigned number);

struct Match {
  const PatternRow* row = nullptr;
  std::string_view subject;          // what stands at {}
  std::optional<PciAddress> device;  // what stands at {pci}
};
// Whether `pattern` fits the front of `text`.
bool fits(std::string_view pattern, std::string_view text, Match& match);

// What a line may be besides a row of the table: read by the code in classifier.cpp and its helpers.
enum class Hook : std::uint8_t {
  Process,     // names a program that uses the GPU
  Minor,       // "Initialized amdgpu … for 0000:0b:00.0 on minor 0"
  Enumerated,  // "pci 0000:03:00.0: [1002:73df] type 00 class 0x030000"
  Bridge,      // "pci 0000:00:01.0: PCI bridge to [bus 01-03]"
  Driver,      // a GPU driver binds: "initializing kernel modesetting", "enabling device"
  Aer,         // PCIe Bus Error, error received, DPC, hot plug of a slot
  Ghes,        // a hardware error record of the firmware (APEI)
  Xid,         // NVRM: Xid (PCI:0000:65:00): 79
  Trace,       // head of a kernel trace: oops, hung task, lock-up
  Frame,       // a line of a trace that shows a GPU driver
  TraceEnd,
  Oom,
  Count,
};

// What the automaton saw in a line: rows to compare and hooks, each once, rows in the table's order.
struct Candidates {
  std::vector<std::uint16_t> rows;
  std::uint32_t hooks = 0;
  [[nodiscard]] bool has(Hook hook) const { return (hooks >> static_cast<unsigned>(hook) & 1U) != 0; }
  [[nodiscard]] bool none() const { return rows.empty() && hooks == 0; }
};
// Fills `out`, which keeps its memory.
void find_candidates(std::string_view line, Candidates& out);

}  // namespace gpuhealth::klog
