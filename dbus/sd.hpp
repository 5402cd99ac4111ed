// SPDX-License-Identifier: Apache-2.0
// Owners of sd-bus objects.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>

namespace gpuhealth::dbus {

struct BusCloser {
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};
struct MessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
struct SlotUnref {
  void operator()(sd_bus_slot* slot) const { sd_bus_slot_unref(slot); }
};
using BusPtr = std::unique_ptr<sd_bus, BusCloser>;
using MessagePtr = std::unique_ptr<sd_bus_message, MessageUnref>;
using SlotPtr = std::unique_ptr<sd_bus_slot, SlotUnref>;

class BusError {
 public:
  BusError() = default;
  ~BusError() { sd_bus_error_free(&error_); }
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  sd_bus_error* get() { return &error_; }
  [[nodiscard]] const char* name() const { return error_.name != nullptr ? error_.name : ""; }
  [[nodiscard]] const char* text() const { return error_.message != nullptr ? error_.message : name(); }

 private:
  sd_bus_error error_{};
};

}  // namespace gpuhealth::dbus
