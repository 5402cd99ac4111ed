// SPDX-License-Identifier: Apache-2.0
// What a program sees of a running gpuhealthd. Blocking calls with a deadline; used by gpuhealthctl, and by the desktop
// and exporter programs from their own loops.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
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
#include "dbus/action_view.hpp"
#include "dbus/loose.hpp"
#include "store/database.hpp"

namespace gpuhealth::dbus {

struct DeviceView {
  std::string id;
  std::string path;
  std::string pci;
  std::string name;  // empty when unknown
  std::vector<std::string> other_names;
  std::string vendor_id;  // "0x1002"
  std::string device_id;
  std::string subsystem_id;  // "0x1da2:0xe471" or empty
  std::string driver;
  std::string unique_id;
  std::string vbios_version;
  std::string family;
  std::string gfx;
  std::vector<ComputeNode> compute_nodes;
  std::string compute_partition;  // "CPX"; empty where the part has no such modes
  std::string memory_partition;
  std::vector<std::string> xgmi_peers;                // PCI addresses
  std::vector<GpuClient> clients;                     // those fields that the bus tells
  std::map<std::uint32_t, std::string> client_names;  // by pid; not from the bus: the caller adds what it may see
  std::string runtime_status;                         // "active", "suspended", …
  std::string performance_level;
  std::string power_profile;
  std::string health;  // "ok", "info", "warning", "critical", "unknown"
  std::map<std::string, std::string> firmware;
  std::vector<std::string> throttle_reasons;
  bool throttle_known = false;
  std::vector<Reading> readings;
  WallTime sampled;  // when the readings were taken
};

struct ManagerView {
  std::string version;
  std::string boot_id;
  std::string kernel_release;
  DriverModule amdgpu;  // empty when it is not loaded
  std::string store_problem;
  std::string config_problem;
  WallTime started;
  std::string health;  // "ok", "info", "warning", "critical"
  std::uint64_t samples = 0;
  // Empty when the daemon is older than these.
  std::string policy_mode;     // "observe", "shadow", "enforce"
  std::string safe_mode;       // why nothing is enforced
  std::string policy_problem;  // why the last good policies are in force
  bool breaker_open = false;
  std::vector<std::string> policy_files;
};

// All that is shown at one moment, in two questions.
struct Snapshot {
  ManagerView manager;
  Properties manager_properties;  // also those that `manager` has no member for
  std::vector<DeviceView> devices;
  std::vector<Condition> conditions;
  std::vector<LooseObject> others;  // actions and the kernel, where the daemon has them
};

// Whether asking may start a daemon that is not running: a person wants an answer, a program that looks all day does
// not undo what an administrator stopped.
enum class Activation : std::uint8_t { Allowed, Never };

class Client {
 public:
  // `address` empty: GPUHEALTH_BUS_ADDRESS if set, else the system bus. Error Unavailable when there is no bus or no
  // daemon (bus activation is tried first).
  static Result<Client> connect(const std::string& address = "",
                                std::chrono::milliseconds deadline = std::chrono::seconds(5),
                                Activation activation = Activation::Allowed);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  Result<ManagerView> manager();
  Result<std::vector<DeviceView>> devices();    // by PCI address; names of a newer daemon are left out
  Result<std::vector<Condition>> conditions();  // open ones, worst first, the longest standing first among equals
  Result<Snapshot> snapshot();
  Result<std::vector<Condition>> past_conditions(WallTime since, std::uint32_t limit);
  Result<std::vector<Event>> events(WallTime since, WallTime until, std::uint32_t limit);
  Result<std::vector<store::HistoryPoint>> history(const store::HistoryQuery& query);
  Result<std::vector<ActionView>> actions();  // by the time of the decision
  // These may wait for a person: polkit's agent asks for a password, up to two minutes.
  Result<void> acknowledge(const std::string& condition_id);
  Result<void> reload();
  Result<void> reload_policy();
  Result<void> reset_breaker();
  Result<void> confirm_action(const std::string& id);
  Result<void> revert_action(const std::string& id);

  // Calls `on_change` after signals that changed devices or conditions (those that came together count once), and at
  // the latest each `tick`, for the numbers that only polling shows; until it returns false or the bus is lost
  // (Unavailable).
  Result<void> watch(std::chrono::milliseconds tick, const std::function<bool()>& on_change);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::dbus
