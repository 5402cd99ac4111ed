// SPDX-License-Identifier: Apache-2.0
// GetManagedObjects' answer as views: everything that is shown comes in one message, so that it belongs together.
#pragma once

#include <vector>

#include "core/condition.hpp"
#include "dbus/client.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {

struct ObjectViews {
  std::vector<DeviceView> devices;    // by PCI address
  std::vector<Condition> conditions;  // worst first
  std::vector<ActionView> actions;    // by the time of the decision
};
ObjectViews read_objects(Reader& in);
ManagerView read_manager(Reader& in);  // of Properties.GetAll

}  // namespace gpuhealth::dbus
