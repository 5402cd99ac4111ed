// SPDX-License-Identifier: Apache-2.0
// The objects as sd-bus sees them: one table an interface, which a test holds against the XML.
#pragma once

#include <vector>

#include "dbus/sd.hpp"

namespace gpuhealth::dbus {

class Calls;
class Model;

// What the handlers work on; it outlives the slots.
struct Objects {
  Model& model;
  Calls& calls;
};

// Puts manager, devices, conditions, actions and the object manager on the connection, and a filter that leaves calls
// unanswered while the bus does not take our answers. The slots keep them there. Empty when sd-bus refuses.
std::vector<SlotPtr> add_objects(sd_bus* bus, Objects& objects);

}  // namespace gpuhealth::dbus
