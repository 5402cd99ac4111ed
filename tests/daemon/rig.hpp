// SPDX-License-Identifier: Apache-2.0
// gpuhealthd itself, as a child: a bus, a machine and a home of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "dbus/client.hpp"
#include "sim/card.hpp"
#include "sim/tree.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::test {

class Process {
 public:
  // `environment`: "NAME=VALUE", beside the test's own.
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
  ~Process();  // kills
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  // Its exit status, 128 + N for signal N; nothing when it still ran after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);
  // Reads its standard error until `text` has come.
  bool says(const std::string& text);
  [[nodiscard]] const std::string& said() const { return said_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::vector<pid_t> children() const;

 private:
  pid_t pid_ = -1;
  Fd handle_;
  Fd errors_;
  std::string said_;
};

struct ConditionSignal {
  std::string id, type, severity, state, device;
  bool acknowledged = false;
};

class Rig {
 public:
  Rig();

  void plug(std::span<const sim::Card> cards, unsigned boot = 1) const;  // `boot` makes the boot id
  void configure(const std::string& yaml) const;
  [[nodiscard]] std::vector<std::string> arguments() const;
  void launch(const std::vector<std::string>& environment = {});
  void start(const std::vector<std::string>& environment = {});  // and returns when it has the name
  // SIGTERM; its exit status if it ended within two seconds.
  std::optional<int> stop();

  [[nodiscard]] dbus::Client client() const;
  // Looks at each signal and each tenth of a second until `seen` says yes; false when it never did.
  [[nodiscard]] bool await(const std::function<bool(dbus::Client&)>& seen) const;
  // Null when it did not become confirmed in time.
  [[nodiscard]] std::optional<Condition> await_confirmed(ConditionType type, const std::string& device) const;
  [[nodiscard]] bool await_samples(std::uint64_t more) const;  // that many more of all devices

  void explain() const;  // to the log of a test that failed

  TempDir tree;
  TempDir home;
  PrivateBus bus;
  std::filesystem::path state;
  std::filesystem::path config;
  std::unique_ptr<Process> daemon;
};

// Samples twice a second, all files each time; conditions confirm and clear within a second or two.
extern const char* const kFastConfig;

std::string id_of(const sim::Card& card);
std::optional<Condition> find(const std::vector<Condition>& conditions, ConditionType type, const std::string& device);
// The next ConditionChanged of this type in this state. Throws when none comes.
ConditionSignal next_condition(Listener& listener, const std::string& type, const std::string& state);
// The object that the next InterfacesAdded or InterfacesRemoved below `prefix` is about.
std::string next_object(Listener& listener, const std::string& member, const std::string& prefix);

}  // namespace gpuhealth::test
