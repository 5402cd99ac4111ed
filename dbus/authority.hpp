// SPDX-License-Identifier: Apache-2.0
// Asks polkit whether a caller may do something, without waiting for it. Where polkit does not answer, root and the
// user that the daemon runs as may, and nobody else.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>

#include "dbus/sd.hpp"

namespace gpuhealth::dbus {

// What a caller is told instead of an answer.
struct Refusal {
  std::string name;  // of a D-Bus error
  std::string text;
};

class Authority {
 public:
  using Then = std::function<void(std::optional<Refusal>)>;  // nothing: go on

  explicit Authority(sd_bus* bus) : bus_(bus) {}
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // `call` is the message whose sender asks; a dialogue is shown only if it allows that. `then` comes once, from inside
  // sd_bus_process(); never after the destructor.
  void check(sd_bus_message* call, const char* action, Then then);

 private:
  struct Check {
    Authority* owner = nullptr;
    std::list<Check>::iterator self;
    std::string sender;
    std::string cancellation_id;
    std::string polkit_problem;  // why polkit could not say
    Then then;
    SlotPtr slot;
  };
  static int polkit_answered(sd_bus_message* reply, void* userdata, sd_bus_error* error) noexcept;
  static int bus_answered(sd_bus_message* reply, void* userdata, sd_bus_error* error) noexcept;
  int ask_polkit(Check& check, const char* action, bool interactive);
  void ask_bus_for_user(Check& check);
  void cancel(const Check& check);
  void finish(Check& check, std::optional<Refusal> refusal);

  sd_bus* bus_;
  std::list<Check> checks_;
  unsigned next_cancellation_ = 0;
};

}  // namespace gpuhealth::dbus
