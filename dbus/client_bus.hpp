// SPDX-License-Identifier: Apache-2.0
// What the clients share: a connection with a deadline, and errors as people can use them.
#pragma once

#include <chrono>
#include <string>

#include "core/error.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::dbus {

// `address` empty: GPUHEALTH_BUS_ADDRESS if set, else the system bus.
Result<BusPtr> connect_client(const std::string& address, std::chrono::milliseconds deadline);
Error from_bus(const BusError& error, int r);

}  // namespace gpuhealth::dbus
