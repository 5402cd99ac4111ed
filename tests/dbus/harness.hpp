// SPDX-License-Identifier: Apache-2.0
// A server in a loop of its own thread, and a second program on the bus that sees signals.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "dbus/sd.hpp"
#include "dbus/server.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::test {

inline constexpr std::chrono::seconds kPatience{30};  // for what must come; a passing test waits for none of it

// Blocking; everything with a deadline.
class Listener {
 public:
  explicit Listener(const std::string& address);

  void wait_for_name(const std::string& name = "org.gpuhealth1");  // returns when somebody owns it
  void wait_for_no_name(const std::string& name = "org.gpuhealth1");
  bool own(const std::string& name);

  // All signals of org.gpuhealth1 from here on.
  void listen();
  // The next signal that is `member`, of `path` where that is not empty; what else comes is noted in seen().
  // Null when none came in time.
  dbus::MessagePtr wait_for(const std::string& member, const std::string& path = "");
  // "PATH MEMBER" of all signals so far, those waited for too.
  [[nodiscard]] const std::vector<std::string>& seen() const { return seen_; }
  void drain();  // reads until an answer to a ping has come: everything sent before it has been seen

  std::string introspect(const std::string& path);
  // Name of the error that the call is answered with; empty for none. Arguments as sd_bus_message_append.
  std::string error_of(const char* path, const char* interface, const char* member, const char* types, ...);
  [[nodiscard]] sd_bus* bus() const { return bus_.get(); }

 private:
  bool name_is_owned(const std::string& name);
  void wait_for_owner(const std::string& name, bool wanted);
  void next(std::chrono::steady_clock::time_point end);

  dbus::BusPtr bus_;
  std::vector<dbus::SlotPtr> slots_;
  std::vector<dbus::MessagePtr> queue_;
  std::vector<std::string> seen_;
};

class Host {
 public:
  explicit Host(const std::string& address, dbus::Requests requests = {});
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Runs on the loop's thread, returns when it has run.
  void on_loop(const std::function<void(dbus::Server&)>& work);
  void start();
  // Until the server itself knows that it has the name: the bus knows earlier, and a change that is pushed in between
  // is not announced, for nobody can have looked before it.
  void wait_connected();
  Error wait_for_problem();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::test
