// SPDX-License-Identifier: Apache-2.0
// Canary runs that people ask for over D-Bus: one a GPU, behind the run of the daemon's own that is under way, shown
// from when they are asked for until sixteen later ones are over.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "dbus/job.hpp"

namespace gpuhealth::daemon {

class CanaryJobs {
 public:
  struct Handlers {
    // As CanaryService::run_now and cancel.
    std::function<Result<void>(const std::string& pci, int tier, std::vector<std::string> only)> run;
    std::function<void(const std::string& pci)> cancel;
    std::function<void(const dbus::JobView&)> show;
    std::function<void(const std::string& id)> hide;
  };
  struct Device {
    std::string pci, id, label;
  };
  CanaryJobs(const Clock& clock, Handlers handlers) : clock_(clock), on_(std::move(handlers)) {}

  // The job's id. Errors: InvalidInput, NotFound, Exhausted, Unavailable.
  Result<std::string> start(const dbus::JobRequest& request, const std::vector<Device>& devices);
  Result<void> cancel(const std::string& id, const std::string& why);
  // To be called before the scheduler looks: what waits goes first.
  void look();
  void measured(const canary::Measurement& m);
  void run_ended(const std::string& pci, const std::string& problem);

 private:
  struct Job {
    dbus::JobView view;
    std::string pci;
    SteadyTime asked;
    std::string cancelled;  // why; it ends when its worker does
  };
  Job* open_on(const std::string& pci);
  void try_to_run(Job& job);
  void end(Job& job, const char* state, const std::string& reason);
  void forget_old();

  const Clock& clock_;
  Handlers on_;
  std::list<Job> jobs_;
  unsigned count_ = 0;
};

}  // namespace gpuhealth::daemon
