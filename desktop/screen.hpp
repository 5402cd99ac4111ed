// SPDX-License-Identifier: Apache-2.0
// The desktop's notification server (org.freedesktop.Notifications) on the session bus: makes the screen show what is
// wanted, by the least change, and says what the person did.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "dbus/sd.hpp"
#include "desktop/notices.hpp"

namespace gpuhealth::desktop {

struct Answers {
  std::function<void(const std::string& key)> dismissed;
  std::function<void(const std::string& key, const std::string& button)> pressed;
  std::function<void()> again;  // the server is a new one, or do-not-disturb has ended: apply once more
};

class Screen {
 public:
  // `address` empty: the session bus. Error Unavailable without one; Exhausted when another gpuhealth-notify serves it.
  static Result<std::unique_ptr<Screen>> open(const std::string& address, Answers answers);

  void apply(const std::map<std::string, Notice>& wanted);
  // Works off what came. False: the bus is gone.
  bool process();
  [[nodiscard]] sd_bus* bus() const { return bus_.get(); }

 private:
  struct Shown {
    std::uint32_t id = 0;
    Notice notice;
  };
  Result<void> start();
  void look_at_server();
  [[nodiscard]] bool disturbing_allowed() const;
  std::uint32_t notify(const Notice& notice, std::uint32_t replaces);
  void close(std::uint32_t id);
  [[nodiscard]] std::string key_of(std::uint32_t id) const;
  static int on_closed(sd_bus_message* m, void* self, sd_bus_error* error);
  static int on_pressed(sd_bus_message* m, void* self, sd_bus_error* error);
  static int on_owner(sd_bus_message* m, void* self, sd_bus_error* error);
  static int on_property(sd_bus_message* m, void* self, sd_bus_error* error);

  dbus::BusPtr bus_;
  std::vector<dbus::SlotPtr> matches_;
  Answers answers_;
  std::map<std::string, Shown> shown_;
  std::optional<bool> buttons_;  // whether the server has them; nothing: not asked yet
  bool markup_ = false;
};

}  // namespace gpuhealth::desktop
