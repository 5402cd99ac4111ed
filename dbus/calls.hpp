// SPDX-License-Identifier: Apache-2.0
// The methods: checks what was asked, asks polkit where something changes, hands the work to the daemon, answers later.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dbus/authority.hpp"
#include "dbus/sd.hpp"
#include "dbus/server.hpp"

namespace gpuhealth::dbus {

class Model;

// Calls that wait for the daemon or for polkit: more are refused with Exhausted.
inline constexpr std::size_t kMaxOpenCalls = 64;
inline constexpr std::size_t kMaxOpenCallsOfOneClient = 8;

class Calls {
 public:
  // `sent` is called after each answer that was not given at once.
  Calls(sd_bus* bus, const Model& model, const Requests& requests, std::function<void()> sent);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Each as a handler of sd-bus: at least 0, or a negative errno.
  int history(sd_bus_message* call);
  int events(sd_bus_message* call);
  int past_conditions(sd_bus_message* call);
  int acknowledge(sd_bus_message* call);  // id in the message
  int acknowledge(sd_bus_message* call, const std::string& condition);
  int reload(sd_bus_message* call);
  int kernel(sd_bus_message* call, KernelRequest request);
  int run_canary(sd_bus_message* call);
  int cancel_canary(sd_bus_message* call, const std::string& job);
  void everybody_left();  // the bus is gone, and with it those who wait for jobs
  int reload_policy(sd_bus_message* call);
  int reset_breaker(sd_bus_message* call);
  int confirm_action(sd_bus_message* call);  // id in the message
  int revert_action(sd_bus_message* call);   // likewise

 private:
  struct Shared;
  class Pending;
  std::shared_ptr<Pending> open(sd_bus_message* call);
  using Then = std::function<void(Result<void>)>;
  // Asks polkit, then the daemon.
  int change(sd_bus_message* call, const char* polkit_action, std::function<void(Then)> work);

  const Model& model_;
  const Requests& requests_;
  std::shared_ptr<Shared> shared_;
  Authority authority_;
  struct Asker;
  void asker_left(Asker& asker);
  [[nodiscard]] bool is_past(const std::string& job) const;
  std::vector<std::shared_ptr<Asker>> askers_;
};

}  // namespace gpuhealth::dbus
