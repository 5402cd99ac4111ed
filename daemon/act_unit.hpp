// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act as a unit of its own: the daemon's sandbox has no way to write anything. The unit outlives the daemon,
// because what was begun has to come to its end.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::daemon {

// What the unit may write: hardware and settings; also the boot loader's files; also whatever a hook of the admin does.
enum class ActRoom : std::uint8_t { Hardware, Boot, Hook };
// Of these words ("device", "run", …) and the request on its input.
ActRoom room_of(const std::vector<std::string>& words, const std::string& input);

struct ActUnit {
  std::vector<std::string> start;  // ends with the unit; its input and output are the program's
  std::vector<std::string> stop;   // returns at once
};
ActUnit act_unit(const std::string& name, const std::string& program, const std::vector<std::string>& arguments,
                 ActRoom room, double limit_s);

// Why no units can be started from here; empty: they can. Without them gpuhealth-act is a plain child.
std::string why_no_units();

// A name that this process has not used for a unit yet, whichever runner asks.
std::string next_unit_name();

}  // namespace gpuhealth::daemon
