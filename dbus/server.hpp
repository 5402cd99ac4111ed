// SPDX-License-Identifier: Apache-2.0
// org.gpuhealth1 on the system bus. The daemon pushes what it knows; the server answers from it, emits change signals,
// and asks polkit before anything that changes something. Reconnects by itself when the bus dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/driver_module.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/reading.hpp"
#include "core/sample.hpp"
#include "dbus/action_view.hpp"
#include "dbus/job.hpp"
#include "dbus/kernel.hpp"
#include "store/database.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::dbus {

// What the daemon does when somebody asks. Each answer may come later, on the loop's thread.
struct Requests {
  std::function<void(store::HistoryQuery, std::function<void(Result<std::vector<store::HistoryPoint>>)>)> history;
  std::function<void(WallTime since, WallTime until, std::uint32_t limit,
                     std::function<void(Result<std::vector<Event>>)>)>
      events;
  std::function<void(WallTime since, std::uint32_t limit, std::function<void(Result<std::vector<Condition>>)>)>
      past_conditions;
  std::function<void(std::string condition_id, std::function<void(Result<void>)>)> acknowledge;  // polkit has said yes
  std::function<void(std::function<void(Result<void>)>)> reload;                                 // likewise
  std::function<void(std::function<void(Result<void>)>)> reload_policy;
  std::function<void(std::function<void(Result<void>)>)> reset_breaker;
  std::function<void(std::string action_id, std::function<void(Result<void>)>)> confirm_action;
  std::function<void(std::string action_id, std::function<void(Result<void>)>)> revert_action;
  KernelHandler kernel;  // likewise
  JobHandler run_canary;
  JobCancelHandler cancel_canary;  // polkit has said yes, or the asker left the bus
};

struct ManagerState {
  std::string version;
  std::string boot_id;
  std::string kernel_release;
  DriverModule amdgpu;         // empty when it is not loaded
  std::string store_problem;   // empty when history works
  std::string config_problem;  // empty when the last reload succeeded
  WallTime started;
  std::uint64_t samples = 0;            // since start
  std::string policy_mode = "observe";  // the highest of any rule in force
  std::string safe_mode;                // why nothing is enforced; empty: it may be
  std::string policy_problem;           // why the last good policies are in force; empty: the files' own are
  bool breaker_open = false;
  std::vector<std::string> policy_files;
};

struct Address {
  std::string value;  // empty: the system bus; else a D-Bus address, for tests and scripts/try
};

class Server {
 public:
  Server(boost::asio::io_context& io, Address address, Requests requests);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Connects and asks for the name; goes on trying in the background when there is no bus. A name that somebody else
  // owns is reported through on_problem and tried again.
  void start(std::function<void(Error)> on_problem);
  [[nodiscard]] bool connected() const;      // and owns the name
  [[nodiscard]] std::size_t queued() const;  // messages that the bus has not taken yet; bounded

  void set_manager(const ManagerState& state);
  void set_kernel(const KernelState& state);
  void set_device(const DeviceInfo& device);  // adds, or replaces what changed (InterfacesAdded / PropertiesChanged)
  void set_sample(const Sample& sample);      // PropertiesChanged only for what is not a fluctuating number
  void set_clients(const std::string& id, std::vector<GpuClient> clients);  // polled: no signal
  void remove_device(const std::string& id);
  void set_condition(const Condition& condition);  // raised and confirmed ones; also updates
  void remove_condition(const std::string& id);    // cleared
  void set_action(const ActionView& action);       // adds, or tells what changed
  void remove_action(const std::string& id);
  void set_canary_problem(const std::string& text);  // why no canary can be run; empty: it can. Polled
  void set_job(const JobView& job);
  void remove_job(const std::string& id);
  void tell(const Event& event);  // EventHappened; without a bus it is not told

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::dbus
