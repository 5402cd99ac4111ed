// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_service.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "canary/process.hpp"
#include "core/fd.hpp"

namespace gpuhealth::daemon {
namespace {

using canary::stats::FindingKind;
using canary::stats::Level;

constexpr double kFastLimitSeconds = 300;
constexpr double kDeepLimitSeconds = 3600;
constexpr off_t kMostBytes = 16 << 20;  // then one older file is kept beside

double seconds(SteadyTime t) {
  return static_cast<double>(t.us) / 1e6;
}

}  // namespace

struct CanaryService::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, const Clock& c, Options o, Handlers h)
      : io(context),
        clock(c),
        options(std::move(o)),
        on(std::move(h)),
        scheduler(options.schedule, 20261130U + static_cast<unsigned>(getpid())) {}

  boost::asio::io_context& io;
  const Clock& clock;
  Options options;
  Handlers on;
  canary::Scheduler scheduler;
  health::CanaryWatch watch;
  std::map<std::string, std::unique_ptr<canary::WorkerProcess>> running;  // by device
  std::map<std::string, std::vector<std::vector<std::string>>> queue;     // further command lines of a run
  std::map<std::string, std::set<pid_t>> stuck;                           // what hangs in the kernel, by device
  std::set<std::string> stalled;

  void restore();
  void look();
  bool is_stuck(const std::string& device);
  void start_run(const canary::Start& start, bool amdgpu);
  void next_worker(const std::string& device, double limit_s);
  void measured(const canary::Measurement& m, const std::string& line, bool keep);
  void keep_line(const std::string& line);
};

void CanaryService::Impl::restore() {
  // What was turned over holds the older part: without it the last good epoch would be forgotten.
  for (const auto& path : {options.results + ".1", options.results}) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (const auto m = canary::parse_measurement(line)) watch.observe(*m);
    }
  }
  for (const auto& f : watch.open()) {
    if (f.finding.level != Level::Recovered) on.finding(f);
  }
}

// A process that was left behind, in state D or dying; EPERM: it is there, and another user's.
bool CanaryService::Impl::is_stuck(const std::string& device) {
  const auto it = stuck.find(device);
  if (it == stuck.end()) return false;
  std::erase_if(it->second, [](pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; });
  if (it->second.empty()) stuck.erase(it);
  return stuck.contains(device);
}

void CanaryService::Impl::look() {
  auto devices = on.devices();
  for (auto& d : devices) {
    d.stuck = d.stuck || is_stuck(d.device);
    d.stall_confirmed = stalled.contains(d.device);
  }
  const double now = seconds(clock.now().steady);
  for (const auto& start : scheduler.due(now, devices)) {
    const auto it = std::ranges::find(devices, start.device, &canary::DeviceSituation::device);
    start_run(start, it != devices.end() && it->amdgpu);
  }
}

void CanaryService::Impl::start_run(const canary::Start& start, bool amdgpu) {
  const bool deep = start.tier >= 2;
  auto& lines = queue[start.device];
  const std::vector<std::string> common = {"--device", start.device, "--json"};
  const auto add = [&](std::vector<std::string> words) {
    words.insert(words.end(), common.begin(), common.end());
    lines.push_back(std::move(words));
  };
  const auto wants = [&](const char* name) { return std::ranges::find(start.only, name) != start.only.end(); };
  // The probe first: it needs no runtime.
  if (amdgpu && (start.only.empty() || wants("userptr_cow"))) add({"--backend", "ioctl", "--tier", "0"});
  std::vector<std::string> rest = {"--backend", "auto", "--tier", std::to_string(start.tier), "--idle-only"};
  const auto own = rest.size();
  for (const auto& name : start.only) {
    if (name == "userptr_cow") continue;
    rest.emplace_back("--only");
    rest.push_back(name);
  }
  if (start.tier > 0 && (start.only.empty() || rest.size() > own)) add(std::move(rest));
  scheduler.started(start.device, 0);
  next_worker(start.device, deep ? kDeepLimitSeconds : kFastLimitSeconds);
}

void CanaryService::Impl::next_worker(const std::string& device, double limit_s) {
  auto& lines = queue[device];
  if (lines.empty()) {
    running.erase(device);
    scheduler.finished(device, seconds(clock.now().steady));
    if (on.run_ended) on.run_ended(device);
    return;
  }
  canary::WorkerProcess::Handlers handlers;
  handlers.measured = [this](const canary::Measurement& m, const std::string& line) { measured(m, line, true); };
  handlers.ended = [weak = weak_from_this(), device, limit_s] {
    const auto self = weak.lock();
    if (!self) return;
    // The handler runs inside the process object, which the next one replaces.
    boost::asio::post(self->io, [weak, device, limit_s] {
      if (const auto again = weak.lock()) again->next_worker(device, limit_s);
    });
  };
  auto words = std::move(lines.front());
  lines.erase(lines.begin());
  const Launch launch = options.launch ? options.launch(device, std::move(words), limit_s)
                                       : Launch{options.program, std::move(words), {}, 0};
  handlers.left = [this, device](pid_t pid) {
    stuck[device].insert(pid);
    on.log(Severity::Warning, "a canary on " + device + " does not end although it was killed: it hangs in the kernel");
  };
  auto process = canary::WorkerProcess::start(io, launch.program, launch.arguments, limit_s + launch.grace_s,
                                              std::move(handlers), launch.stop);
  if (!process) {
    on.log(Severity::Warning, process.error().text);
    lines.clear();
    running.erase(device);
    scheduler.finished(device, seconds(clock.now().steady));
    return;
  }
  running[device] = std::move(*process);
}

void CanaryService::Impl::measured(const canary::Measurement& m, const std::string& line, bool keep) {
  if (keep) keep_line(line);
  if (const auto pid = m.notes.find("pid"); m.status == canary::Status::Stuck && pid != m.notes.end())
    stuck[m.device].insert(std::max(1, std::atoi(pid->second.c_str())));
  const auto outcome = watch.observe(m);
  if (outcome.next_after_s) scheduler.want(m.device, m.canary, seconds(clock.now().steady) + *outcome.next_after_s);
  for (const auto& f : outcome.findings) {
    if (f.finding.kind == FindingKind::Stall) {
      if (f.finding.level == Level::Confirmed) stalled.insert(m.device);
      if (f.finding.level == Level::Recovered) stalled.erase(m.device);
    }
    on.finding(f);
  }
  if (on.measured) on.measured(m, outcome);
}

void CanaryService::Impl::keep_line(const std::string& line) {
  const Fd file(open(options.results.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return;
  const std::string whole = line + "\n";
  if (write(file.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) return;
  struct stat info{};
  if (fstat(file.get(), &info) == 0 && info.st_size > kMostBytes)
    rename(options.results.c_str(), (options.results + ".1").c_str());
}

CanaryService::CanaryService(boost::asio::io_context& io, const Clock& clock, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, clock, std::move(options), std::move(handlers))) {}

CanaryService::~CanaryService() {
  impl_->running.clear();
}

void CanaryService::start() {
  const auto folder = impl_->options.results.substr(0, impl_->options.results.rfind('/'));
  mkdir(folder.c_str(), 0750);
  impl_->restore();
}

std::vector<canary::stats::BaselineView> CanaryService::baselines() const {
  return impl_->watch.baselines();
}

void CanaryService::look() {
  impl_->look();
}

void CanaryService::ask_now(const std::string& pci, int tier) {
  impl_->scheduler.ask_now(pci, std::min(tier, impl_->options.schedule.most_tier));
}

void CanaryService::want(const std::string& pci, const std::string& canary) {
  impl_->scheduler.want(pci, canary, seconds(impl_->clock.now().steady));
}

}  // namespace gpuhealth::daemon
