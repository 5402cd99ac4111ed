// SPDX-License-Identifier: Apache-2.0
// The machine on which a scenario plays: its /sys over FUSE, its bus, its daemon. Only inside run_isolated().
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/announcer.hpp"
#include "sim/device_nodes.hpp"
#include "sim/fault_fs.hpp"
#include "sim/scenario.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::sim {

// A child with a log; killed at the end.
class Child {
 public:
  Child() = default;
  static Result<Child> start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                             const std::filesystem::path& log);  // log empty: the terminal
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] bool runs();
  void signal(int number) const;
  // Its exit status, 128 + N for signal N; nothing when it still runs after `seconds`.
  std::optional<int> wait(double seconds);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

class Stage {
 public:
  struct Options {
    std::string bin_dir;
    double speed = 10;
  };
  // Writes the machine, mounts it over /sys and starts the bus.
  static Result<std::unique_ptr<Stage>> set_up(const Scenario& scenario, Options options);

  Result<void> start_bus();
  void stop_bus();
  Result<void> start_daemon();
  // Ends it with the signal; its status, or nothing when it had to be killed.
  std::optional<int> stop_daemon(int signal);
  Child daemon;

  [[nodiscard]] const std::filesystem::path& machine() const { return machine_; }
  [[nodiscard]] FaultFs& files() { return *files_; }
  [[nodiscard]] Announcer* announcer() { return announcer_.get(); }  // none while there is no bus
  [[nodiscard]] double speed() const { return options_.speed; }
  // One record of the kernel log. A reboot begins a new one.
  Result<void> log(unsigned priority, const std::string& text);
  void new_log();
  [[nodiscard]] DeviceNodes* nodes() { return nodes_.get(); }  // none where they cannot be made
  [[nodiscard]] std::filesystem::path canary_results() const { return base_ / "state/canary/results.jsonl"; }
  [[nodiscard]] std::vector<LedgerEntry> ledger() const;
  [[nodiscard]] std::string bus_address() const;
  [[nodiscard]] std::vector<std::string> environment() const;  // for programs on this machine
  [[nodiscard]] std::string daemon_log() const;

 private:
  explicit Stage(Options options) : options_(std::move(options)) {}
  Result<void> mount_all(const Scenario& scenario);
  Result<void> mount_nodes(const Scenario& scenario);
  Result<void> install_opencl(const Scenario& scenario);
  Result<void> set_variables(const Scenario& scenario);
  Result<void> mount_other_files(const Scenario& scenario);

  Options options_;
  std::filesystem::path base_;
  std::filesystem::path machine_;
  std::unique_ptr<FaultFs> files_;
  std::unique_ptr<DeviceNodes> nodes_;
  std::unique_ptr<Announcer> announcer_;
  Polkit polkit_ = Polkit::Absent;
  std::uint64_t records_ = 0;  // of the kernel log
  Child bus_;
};

}  // namespace gpuhealth::sim
