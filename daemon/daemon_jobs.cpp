// SPDX-License-Identifier: Apache-2.0
// Canaries that people ask for, and what is told of those that cannot run.
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {

void Daemon::Impl::start_jobs() {
  CanaryJobs::Handlers on;
  on.run = [this](const std::string& pci, int tier, std::vector<std::string> only) {
    return canaries->run_now(pci, tier, std::move(only));
  };
  on.cancel = [this](const std::string& pci) { canaries->cancel(pci); };
  on.show = [this](const dbus::JobView& job) { bus.set_job(job); };
  on.hide = [this](const std::string& id) { bus.remove_job(id); };
  jobs = std::make_unique<CanaryJobs>(clock, std::move(on));
  bus.set_canary_problem({});
}

void Daemon::Impl::ask_canary(const dbus::JobRequest& request, const std::function<void(Result<std::string>)>& then) {
  if (!jobs)
    return then(fail(ErrorCode::Unavailable,
                     "this daemon runs no canaries: canary.interval is 0, or it was not started by systemd as root"));
  std::vector<CanaryJobs::Device> known;
  known.reserve(devices.size());
  for (const auto& [id, device] : devices) known.push_back({to_string(device.info.pci), id, device.label});
  then(jobs->start(request, known));
}

// What people asked for goes before what the clock says. A GPU that cannot be measured is told once, and once more when
// it can; one that sleeps or runs on battery is left alone on purpose, and is no news.
void Daemon::Impl::look_at_canaries() {
  if (!canaries || devices.empty()) return;
  jobs->look();
  canaries->look();
  for (const auto& [id, device] : devices) {
    const std::string pci = to_string(device.info.pci);
    const bool rests = !device.has_sample || device.sample.power != PowerState::Active;
    const std::string why = rests ? std::string() : canaries->overdue(pci);
    auto& told = overdue[pci];
    if (told.empty() == why.empty()) continue;
    if (!why.empty())
      event(Severity::Info, "canary.overdue", id, device.label + ": no full canary run for long: " + why);
    else if (!rests)
      event(Severity::Info, "canary.on-time", id, device.label + ": measured again");
    told = why;
  }
}

}  // namespace gpuhealth::daemon
