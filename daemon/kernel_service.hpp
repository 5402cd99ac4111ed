// SPDX-License-Identifier: Apache-2.0
// The daemon's part in choosing a kernel: at each start what became of a trial is found out, the running kernel is
// qualified by its canaries, and its verdict is written down. gpuhealth-act makes every change; nothing here blocks.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/condition.hpp"
#include "dbus/kernel.hpp"
#include "health/kernel_verdict.hpp"

namespace gpuhealth::daemon {

class KernelService {
 public:
  using Words = std::vector<std::string>;
  using Ended = std::function<void(int code, std::string said)>;  // code -1: it did not run or was killed
  struct Options {
    std::string boot_id;
    std::string mark;     // file in which an orderly end of a boot is noted
    bool reboot = false;  // a machine whose trial failed goes back to the good kernel by itself
    health::KernelVerdict::Settings verdict;
    Duration again = std::chrono::seconds(15);  // between two runs of canaries while they judge
    Duration refresh = std::chrono::minutes(10);
    std::vector<std::string> watched;  // files whose change is looked at sooner: somebody else may choose a kernel too
  };
  struct Handlers {
    std::function<void(Words, Ended)> act;              // gpuhealth-act, with what it needs to change /boot
    std::function<void(Words, Ended)> look;             // gpuhealth-act, that reads alone
    std::function<std::vector<std::string>()> gpus;     // PCI addresses of those that canaries may run on
    std::function<std::vector<std::string>()> gpu_ids;  // DeviceInfo::id() of all
    std::function<std::vector<std::string>()> gfx;
    std::function<void(const std::string& device)> run_canary;  // null: no canaries run by themselves
    std::function<std::vector<canary::stats::BaselineView>()> baselines;
    std::function<void(const dbus::KernelState&)> changed;
    std::function<void(Severity, const std::string& type, const std::string& text)> event;
    std::function<void()> qualified;  // the running kernel is blessed: what waits for that may start
  };
  KernelService(const Clock& clock, Options options, Handlers handlers);

  void start();
  void tick();  // with each sample
  void measured(const canary::Measurement& m, const health::CanaryOutcome& outcome);
  void run_ended(const std::string& device);
  void confirmed(const Condition& condition);
  void asked(const dbus::KernelRequest& request, std::function<void(Result<void>)> then);
  void stopped();                                                          // the daemon was told to stop
  [[nodiscard]] const dbus::KernelState& state() const { return state_; }  // empty until it was looked at

 private:
  void put(Words words, Ended ended);
  void next();
  void on_start(int code, const std::string& said);
  void refresh();
  void on_state(int code, const std::string& said);
  void begin();
  void judge();
  void give_verdict(bool good, const std::string& why);
  void on_verdict(bool good, const std::string& why, int code, const std::string& said);

  const Clock& clock_;
  Options options_;
  Handlers handlers_;
  dbus::KernelState state_;
  bool on_trial_ = false;
  bool looking_ = false;
  bool deciding_ = false;  // the verdict is being written down
  SteadyTime next_refresh_;
  SteadyTime next_stamp_;
  std::int64_t stamp_ = 0;  // of the watched files
  SteadyTime next_run_;
  std::string said_waiting_;
  std::optional<health::KernelVerdict> verdict_;
  struct Job {
    Words words;
    Ended ended;
  };
  std::deque<Job> queue_;
  bool running_ = false;
};

}  // namespace gpuhealth::daemon
