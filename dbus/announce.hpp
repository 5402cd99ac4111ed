// SPDX-License-Identifier: Apache-2.0
// Tells the bus what the model marks as new, as long as the bus takes messages.
#pragma once

#include <cstddef>

struct sd_bus;

namespace gpuhealth::dbus {

class Model;

// With more messages than this waiting to be written, changes stay marks in the model and calls are not answered.
inline constexpr std::size_t kMaxQueuedMessages = 256;
std::size_t queued_messages(sd_bus* bus);

// True when something was put into the queue. Emits in the order removed, added, changed.
bool announce(sd_bus* bus, Model& model);

}  // namespace gpuhealth::dbus
