// SPDX-License-Identifier: Apache-2.0
// What actions say to people, and the event that they hand to programs.
#pragma once

#include <string>
#include <string_view>

#include "actions/actuator.hpp"

namespace gpuhealth::actions {

inline constexpr std::string_view kDrainFile = "/run/gpuhealth/drain";
inline constexpr std::string_view kQualifiedFile = "/run/gpuhealth/qualified";

// {device}, {pci}, {name}, {condition}, {rule}, {policy}, {reason} and {host} become what they name. An empty template
// is the reason. One line: what acts on a terminal or ends a header becomes a blank.
std::string fill_template(const Asked& asked, const std::string& text);

// The event as programs get it: {"host":…,"action":…,"device":…,"pci":…,"policy":…,"rule":…,"condition":…,"reason":…,
// "event":{…}}, ASCII, one line.
std::string event_json(const Asked& asked);

}  // namespace gpuhealth::actions
