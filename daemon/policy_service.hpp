// SPDX-License-Identifier: Apache-2.0
// Policies in the daemon: loaded from their folders, evaluated when something could matter, their decisions said
// (observe), counted (shadow) or handed to gpuhealth-act (enforce). docs/policy.md and docs/actions.md say the rest.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actions/service.hpp"
#include "core/event.hpp"
#include "core/system.hpp"
#include "dbus/action_view.hpp"
#include "policy/evaluate.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class PolicyService {
 public:
  struct Options {
    std::string root = "/";  // policies, ledger
    std::string sysroot;     // hardware; empty: this machine
    std::string config_dir;  // in the place of /etc/gpuhealthd; empty: the root's
    std::string state_file;  // what the evaluator remembers
    std::string boot_id;
    std::string kernel;
    std::string act;  // gpuhealth-act
    double speed = 1;
    Duration longest_step = std::chrono::minutes(1);  // between two looks; what lies further apart is not counted
  };
  struct Standing {  // for the bus
    std::string mode = "observe", safe_mode, problem;
    bool breaker_open = false;
    std::vector<std::string> files;
  };
  struct Handlers {
    std::function<std::vector<policy::DeviceState>()> devices;
    std::function<std::string(const std::string& device)> label;
    std::function<std::vector<std::string>()> advisories;  // of the running kernel; asked when a rule wants them
    std::function<void(const ActionRequest&)> run_canary;
    std::function<void(Severity, std::string type, const std::string& device, std::string text)> event;
    std::function<void(Severity, const std::string&)> log;
    std::function<void(const Standing&)> standing;
    std::function<void(const dbus::ActionView&)> show;
    std::function<void(const std::string& id)> hide;
    std::function<void(WallTime since)> want_events;  // answered by old_events()
  };
  PolicyService(boost::asio::io_context& io, const Clock& clock, Options options, Handlers handlers);
  ~PolicyService();
  PolicyService(const PolicyService&) = delete;
  PolicyService& operator=(const PolicyService&) = delete;

  void start();
  Result<void> reload();  // a set with a mistake leaves the last good one in force
  // With every round of samples, once the devices are known; costs nothing while no rule could matter.
  void look();
  void changed();  // something did: looked at once, when the loop comes round
  void devices_changed();
  void advisories_changed();
  void happened(const Event& event);
  void old_events(const std::vector<Event>& events);  // of history, in any order
  void condition_cleared(const std::string& condition);
  void canary_passed(const std::string& device);
  void device_came_back(const std::string& device);

  void confirm(const std::string& id, std::function<void(Result<void>)> then);
  void revert(const std::string& id, std::function<void(Result<void>)> then);
  void reset_breaker(std::function<void(Result<void>)> then);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The condition that an event of the daemon's is about, by its title; nothing for other events.
std::optional<ConditionType> condition_of(const Event& event);

}  // namespace gpuhealth::daemon
