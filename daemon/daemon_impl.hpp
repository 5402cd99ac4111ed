// SPDX-License-Identifier: Apache-2.0
// What the parts of the daemon share: its state, on the one loop. Included by daemon*.cpp alone.
#pragma once

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/boot_id.hpp"
#include "core/version.hpp"
#include "daemon/act_runner.hpp"
#include "daemon/canary_jobs.hpp"
#include "daemon/canary_service.hpp"
#include "daemon/canary_unit.hpp"
#include "daemon/daemon.hpp"
#include "daemon/hotplug.hpp"
#include "daemon/kernel_service.hpp"
#include "daemon/log.hpp"
#include "daemon/log_events.hpp"
#include "daemon/policy_service.hpp"
#include "daemon/room_options.hpp"
#include "daemon/sleep_watch.hpp"
#include "dbus/server.hpp"
#include "health/engine.hpp"
#include "store/worker.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/driver_module.hpp"
#include "telemetry/klog/origin.hpp"
#include "telemetry/log_reader.hpp"
#include "telemetry/reader_pool.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/side_reader.hpp"

namespace gpuhealth::daemon {
namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

// A card as it was when the machine fell asleep.
struct BeforeSleep {
  DeviceInfo info;
  Sample sample;
};

struct Device {
  DeviceInfo info;
  std::string label;
  Sample sample;       // the last one
  SteadyTime sampled;  // when it came
  bool has_sample = false;
  bool stuck = false;
  bool stale = false;
  std::vector<Reading> rocm_smi;  // the library's, where they count
  SteadyTime rocm_smi_at;
  bool by_nvml = false;                        // NVIDIA's: read through its library
  ClientLook nvml_clients;                     // that the library told, with its memory
  std::optional<ClientLook> used_by;           // the last look at its programs
  SteadyTime quiet_until;                      // it is being reset: what looks into its driver waits
  SteadyTime reset_in_log;                     // when the kernel log last told of a reset
  std::optional<health::SignSeen> reset_told;  // by the compute driver, and not yet by the log
  std::optional<BeforeSleep> before_sleep;
  std::optional<double> vram_losses;  // the last that was read, however long ago
};

struct Daemon::Impl {
  Impl(asio::io_context& context, const Clock& c, Options o, Config cfg);

  asio::io_context& io;
  const Clock& clock;
  Options options;
  Config config;
  std::string boot_id;

  store::Worker store;
  health::Engine engine;
  dbus::Server bus;
  telemetry::ReaderPool readers;
  std::unique_ptr<telemetry::ReaderPool> nvml;  // while the bus has an NVIDIA GPU
  bool nvml_known = false;                      // it has said what it sees
  std::unique_ptr<telemetry::SideReader> rocm_smi;
  std::vector<std::string> rocm_smi_skip;  // queries that ended a reader
  unsigned rocm_smi_init_faults = 0;
  bool rocm_smi_refused = false;
  SteadyTime next_rocm_smi;
  std::unique_ptr<Hotplug> hotplug;
  std::unique_ptr<telemetry::LogReader> kernel_log;
  std::vector<telemetry::KlogFrame> early_log;  // what came before the devices were known
  std::unique_ptr<CanaryJobs> jobs;             // while `canaries` are
  std::unique_ptr<CanaryService> canaries;
  std::map<std::string, std::string> overdue;  // by PCI address: why it has not been measured for long, as it was told
  std::unique_ptr<ActRunner> kernel_act;       // before `kernel`, which uses it
  std::unique_ptr<ActRunner> starter;          // of units
  std::unique_ptr<KernelService> kernel;
  std::unique_ptr<PolicyService> policies;
  std::map<std::string, DeviceInfo> departed;                                     // GPUs that left since the start
  std::map<std::string, std::map<std::string, policy::CanaryFact>> canary_facts;  // by device, by what was found
  std::map<std::string, std::map<std::string, double>> own_caps;                  // device -> action -> W
  std::map<std::string, std::set<std::string>> to_verify;  // devices on which an action was done: canaries that count
  std::unique_ptr<telemetry::SideReader> clients;
  std::set<std::uint64_t> clients_avoid;  // GPUs in whose client list a reader hangs
  SteadyTime next_clients;
  std::unique_ptr<telemetry::LogReader> kfd_events;  // once there is a GPU of the compute driver's
  std::unique_ptr<SleepWatch> sleep_watch;
  std::optional<SteadyTime> sleeping_since;

  std::map<std::string, Device> devices;  // by DeviceInfo::id()
  std::map<PciAddress, std::string> by_address;
  std::vector<health::RememberedDevice> remembered;
  bool remembered_known = false;
  bool history_restored = false;
  bool discovered = false;
  bool ready = false;
  dbus::ManagerState manager;

  asio::steady_timer tick;
  std::uint64_t ticks = 0;
  SteadyTime last_tick;
  SteadyTime next_discovery;
  asio::steady_timer watchdog;
  milliseconds watchdog_period{};

  void start();
  void schedule_tick();
  void on_tick();
  void schedule_watchdog();
  void start_watchdog();
  void start_canaries();
  void start_jobs();
  void ask_canary(const dbus::JobRequest& request, const std::function<void(Result<std::string>)>& then);
  void look_at_canaries();
  void start_kernel();
  std::vector<canary::DeviceSituation> canary_situations() const;
  void on_canary(const health::CanaryFinding& finding);
  void start_policies();
  std::vector<policy::DeviceState> policy_devices() const;
  std::vector<std::string> running_advisories() const;
  void run_canary(const ActionRequest& request);
  void note_own_cap(const dbus::ActionView& view);
  void on_good_canary(const std::string& pci, const std::string& canary);
  void note_canary(const std::string& device, const health::CanaryFinding& finding);
  void restore_history();
  void on_devices(const telemetry::DevicesFrame& frame, bool by_nvml);
  void start_nvml();
  void start_rocm_smi();
  void ask_rocm_smi(SteadyTime now);
  void on_rocm_smi(telemetry::Frame& frame);
  void prefer_rocm_smi(const Device& device, Sample& sample) const;
  void on_rocm_smi_trouble(const telemetry::SideReader::Trouble& trouble);
  void discover();
  void add_device(const DeviceInfo& info, bool by_nvml);
  void drop_device(const std::string& id, bool renamed);
  void take_inventory();
  void on_sample(const PciAddress& address, Sample& sample);
  void on_stuck(const PciAddress& address, bool stuck, const std::string& what);
  void start_kernel_log();
  void on_kernel_log(const telemetry::KlogFrame& frame);
  void on_notice(const Notice& notice);
  Device* concerned(const telemetry::KlogFrame::Item& item);
  void start_kfd_events();
  void on_kfd_events(const telemetry::KlogFrame& frame);
  void settle_resets(SteadyTime now);
  void follow_reset(Device& device, klog::Type type, SteadyTime at);
  void compare_vram_losses(Device& device, const Sample& now);
  void start_sleep_watch();
  void on_falls_asleep();
  void on_awake();
  [[nodiscard]] bool machine_sleeps(SteadyTime now);
  void compare_with_before_sleep(Device& device);
  void start_clients();
  void look_at_clients(SteadyTime now);
  void on_clients(const telemetry::Frame& frame);
  void on_clients_trouble(const telemetry::SideReader::Trouble& trouble);
  void mark_stale();
  void refresh_bus();
  void publish(const std::vector<health::Change>& changes);
  void publish(const health::Change& change);
  void event(Severity severity, std::string type, const std::string& device, std::string text);
  void happened(Event event);
  void announce_ready();
  void on_store_health(const store::Health& health);
  void on_store_open(const store::OpenReport& report);
  Result<void> acknowledge(const std::string& id);
  void forget(const std::string& device);
  Result<void> reload();
  Device* device_at(const PciAddress& address);
  dbus::Requests requests();
  telemetry::ReaderPool::Handlers reader_handlers(bool by_nvml);
};

}  // namespace gpuhealth::daemon
