// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_jobs.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/pci.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);
constexpr std::ptrdiff_t kKept = 16;
constexpr std::size_t kMostResults = 1024;

Result<CanaryJobs::Device> choose(const std::string& wanted, const std::vector<CanaryJobs::Device>& devices) {
  if (wanted.empty() && devices.size() == 1) return devices.front();
  if (wanted.empty() && devices.empty()) return fail(ErrorCode::NotFound, "the daemon knows no GPU");
  const auto parsed = parse_pci_address(wanted);  // the short form too
  const std::string address = parsed ? to_string(*parsed) : std::string();
  std::string known;
  for (const auto& d : devices) {
    if (!wanted.empty() && (d.id == wanted || d.pci == address)) return d;
    known += (known.empty() ? "" : ", ") + d.pci;
  }
  if (wanted.empty()) return fail(ErrorCode::InvalidInput, "this machine has several GPUs; name one of " + known);
  return fail(ErrorCode::NotFound, "no GPU has the id or PCI address \"" + wanted + "\"; there is " + known);
}

bool is_canary(const std::string& name) {
  return !canary::metrics_of(name).empty();
}

}  // namespace

CanaryJobs::Job* CanaryJobs::open_on(const std::string& pci) {
  const auto it =
      std::ranges::find_if(jobs_, [&](const Job& job) { return job.pci == pci && !dbus::is_over(job.view); });
  return it == jobs_.end() ? nullptr : &*it;
}

Result<std::string> CanaryJobs::start(const dbus::JobRequest& request, const std::vector<Device>& devices) {
  const auto device = choose(request.device, devices);
  if (!device) return tl::unexpected(device.error());
  for (const auto& name : request.only) {
    if (!is_canary(name))
      return fail(ErrorCode::NotFound,
                  "no canary has the name \"" + name + "\"; gpuhealthctl canary list names them all");
  }
  if (const auto* other = open_on(device->pci))
    return fail(ErrorCode::Exhausted, "somebody measures " + device->pci + " already (" + other->view.id +
                                          "); ask again when that has ended");
  forget_old();
  auto& job = jobs_.emplace_back();
  job.pci = device->pci;
  job.asked = clock_.now().steady;
  job.view.id = "run" + std::to_string(count_ + 1);
  job.view.device = device->id;
  job.view.device_label = device->label;
  job.view.tier = request.tier;
  job.view.only = request.only;
  job.view.state = "waiting";
  auto ran = on_.run(job.pci, static_cast<int>(request.tier), request.only);
  if (!ran && ran.error().code != ErrorCode::Exhausted) {
    jobs_.pop_back();
    return tl::unexpected(ran.error());
  }
  ++count_;
  if (ran) {
    job.view.state = "running";
    job.view.started = clock_.now().wall;
  } else {
    job.view.reason = ran.error().text;
  }
  on_.show(job.view);
  return job.view.id;
}

void CanaryJobs::try_to_run(Job& job) {
  const auto ran = on_.run(job.pci, static_cast<int>(job.view.tier), job.view.only);
  if (ran) {
    job.view.state = "running";
    job.view.reason.clear();
    job.view.started = clock_.now().wall;
    on_.show(job.view);
  } else if (ran.error().code != ErrorCode::Exhausted || clock_.now().steady - job.asked > kPatience) {
    end(job, "failed", ran.error().text);
  }
}

void CanaryJobs::look() {
  for (auto& job : jobs_) {
    if (job.view.state == "waiting") try_to_run(job);
  }
}

Result<void> CanaryJobs::cancel(const std::string& id, const std::string& why) {
  const auto it = std::ranges::find_if(jobs_, [&](const Job& job) { return job.view.id == id; });
  if (it == jobs_.end() || dbus::is_over(it->view))
    return fail(ErrorCode::NotFound, "the run \"" + id + "\" is over already");
  if (it->view.state == "waiting") {
    end(*it, "cancelled", why);
    return {};
  }
  it->cancelled = why;
  on_.cancel(it->pci);
  return {};
}

void CanaryJobs::measured(const canary::Measurement& m) {
  auto* job = open_on(m.device);
  if (job == nullptr || job->view.state != "running" || job->view.results.size() >= kMostResults) return;
  job->view.results.push_back(canary::to_json_line(m));
  on_.show(job->view);
}

void CanaryJobs::run_ended(const std::string& pci, const std::string& problem) {
  auto* job = open_on(pci);
  if (job == nullptr || job->view.state != "running") return;  // the scheduler's own
  if (!job->cancelled.empty()) return end(*job, "cancelled", job->cancelled);
  if (!problem.empty()) return end(*job, "failed", problem);
  if (job->view.results.empty())
    return end(*job, "failed", "the canary worker measured nothing; see journalctl -u gpuhealthd");
  end(*job, "done", {});
}

void CanaryJobs::end(Job& job, const char* state, const std::string& reason) {
  job.view.state = state;
  job.view.reason = reason;
  job.view.ended = clock_.now().wall;
  on_.show(job.view);
}

void CanaryJobs::forget_old() {
  const auto over = [](const Job& job) { return dbus::is_over(job.view); };
  while (std::ranges::count_if(jobs_, over) > kKept) {
    const auto oldest = std::ranges::find_if(jobs_, over);
    on_.hide(oldest->view.id);
    jobs_.erase(oldest);
  }
}

}  // namespace gpuhealth::daemon
