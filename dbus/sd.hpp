// SPDX-License-Identifier: Apache-2.0
// Owners of sd-bus objects.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>
#include <string>

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

// The bus at an address, or without one that of `by_default`. Negative: errno.
inline int open_bus(BusPtr& to, const std::string& address, int (*by_default)(sd_bus**) = sd_bus_open_system) {
  sd_bus* raw = nullptr;
  if (address.empty()) {
    const int r = by_default(&raw);
    to.reset(raw);
    return r;
  }
  int r = sd_bus_new(&raw);
  to.reset(raw);
  if (r >= 0) r = sd_bus_set_address(raw, address.c_str());
  if (r >= 0) r = sd_bus_set_bus_client(raw, 1);
  return r < 0 ? r : sd_bus_start(raw);
}

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
