// SPDX-License-Identifier: Apache-2.0
// From what canaries measured before and after to why: signs first, then the table causes.def. Each answer says which
// signs it rests on and what spoke against the others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "canary/measurement.hpp"

namespace gpuhealth::health {

enum class Symptom : std::uint8_t {
  Slower,           // any canary, by 8 % or more
  KernelsSlower,    // compute or video memory
  CopiesSlower,     // pinned copies
  LessPerClock,     // kernels over their clock, copies over their link
  ClockLower,       // by 8 % or more while the canary ran
  ThermalBits,      // the card says that heat holds it
  PowerBits,        // the card says that a power limit holds it
  LinkSlower,       // negotiated speed times lanes
  Foreign,          // another client, by the gate
  SoftwareChanged,  // the epoch
  FleetSlower,      // other machines with the same change are slower too
  Stalled,          // the host-copy stall's rule
  ControlsFine,     // pinned copies and the read-only mapping are as before, or plainly healthy
  SystemTime,       // the worker's own kernel time is as long as the stall
  Evicted,          // own buffers are not resident in video memory
  Wrong,            // an output is not what it must be
  Count,
};
std::string_view to_string(Symptom sign);

// Unknown where nothing was measured that could tell.
using Symptoms = std::array<std::optional<bool>, static_cast<std::size_t>(Symptom::Count)>;

struct CauseInput {
  std::span<const canary::Measurement> before;  // while all was well; may be empty
  std::span<const canary::Measurement> after;
  std::optional<bool> fleet_slower;
};
Symptoms symptoms_of(const CauseInput& input);

struct CauseVerdict {
  std::string name = "unknown";  // of causes.def
  std::string text = "the cause is not known";
  std::vector<std::string> evidence;                         // signs it rests on
  std::vector<std::pair<std::string, std::string>> against;  // other cause -> the sign that spoke against it
  std::vector<std::pair<std::string, std::string>> changed;  // fields of the epoch, "kernel" -> "a -> b"
};
CauseVerdict attribute(const Symptoms& signs);
CauseVerdict find_cause(const CauseInput& input);

struct CauseInfo {
  std::string_view name, text;
};
std::vector<CauseInfo> all_causes();

}  // namespace gpuhealth::health
