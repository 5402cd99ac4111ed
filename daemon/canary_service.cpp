// SPDX-License-Identifier: Apache-2.0
#include "daemon/canary_service.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "canary/baseline_reset.hpp"
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
  std::map<std::string, std::set<canary::ProcessId>> stuck;               // what hangs in the kernel, by device
  std::set<std::string> stalled;
  off_t read_to = 0;  // of the results: what others wrote behind it is looked at

  void restore();
  void look();
  bool is_stuck(const std::string& device);
  void start_run(const canary::Start& start, bool amdgpu, bool idle_only);
  void end_run(const std::string& device, const std::string& problem);
  void read_resets(off_t until);
  void forget(const canary::BaselineReset& reset);
  void next_worker(const std::string& device, double limit_s);
  void measured(const canary::Measurement& m, const std::string& line, bool keep);
  void keep_line(const std::string& line);
};

void CanaryService::Impl::restore() {
  // What was turned over holds the older part: without it the last good epoch would be forgotten.
  for (const auto& path : {options.results + ".1", options.results}) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (const auto reset = canary::parse_reset(line)) {
        watch.reset(reset->device, reset->canary);
      } else if (const auto m = canary::parse_measurement(line)) {
        watch.observe(*m);
      }
    }
  }
  struct stat info{};
  if (stat(options.results.c_str(), &info) == 0) read_to = info.st_size;
  for (const auto& f : watch.open()) {
    if (f.finding.level != Level::Recovered) on.finding(f);
  }
}

// gpuhealthctl canary baseline reset appends its line to the same file.
void CanaryService::Impl::read_resets(off_t until) {
  if (until <= read_to) {
    read_to = until;  // somebody made the file shorter
    return;
  }
  std::ifstream in(options.results);
  in.seekg(read_to);
  std::string text(static_cast<std::size_t>(std::min<off_t>(until - read_to, kMostBytes)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  const auto whole = text.rfind('\n');
  if (whole == std::string::npos) return;
  read_to += static_cast<off_t>(whole) + 1;
  std::istringstream lines(text.substr(0, whole));
  for (std::string line; std::getline(lines, line);) {
    if (const auto reset = canary::parse_reset(line)) forget(*reset);
  }
}

// What was found by the baselines that are gone is over.
void CanaryService::Impl::forget(const canary::BaselineReset& reset) {
  const auto before = watch.open();
  watch.reset(reset.device, reset.canary);
  on.log(Severity::Info, "baselines of " + (reset.canary.empty() ? "all canaries" : reset.canary) + " on " +
                             reset.device + " forgotten, as " + reset.who + " asked: " + reset.why);
  for (auto f : before) {
    if (f.finding.device != reset.device || (!reset.canary.empty() && f.finding.canary != reset.canary)) continue;
    if (f.finding.level == Level::Confirmed && f.finding.kind == FindingKind::Stall) stalled.erase(reset.device);
    f.finding.level = Level::Recovered;
    f.finding.detail = "its baseline was reset: " + reset.why;
    on.finding(f);
  }
}

bool CanaryService::Impl::is_stuck(const std::string& device) {
  const auto it = stuck.find(device);
  if (it == stuck.end()) return false;
  std::erase_if(it->second, [](const canary::ProcessId& process) { return !canary::is_there(process); });
  if (it->second.empty()) stuck.erase(it);
  return stuck.contains(device);
}

void CanaryService::Impl::look() {
  struct stat info{};
  if (stat(options.results.c_str(), &info) == 0) read_resets(info.st_size);
  auto devices = on.devices();
  for (auto& d : devices) {
    d.stuck = d.stuck || is_stuck(d.device);
    d.stall_confirmed = stalled.contains(d.device);
  }
  const double now = seconds(clock.now().steady);
  for (const auto& start : scheduler.due(now, devices)) {
    const auto it = std::ranges::find(devices, start.device, &canary::DeviceSituation::device);
    scheduler.started(start.device, now);
    start_run(start, it != devices.end() && it->amdgpu, true);
  }
}

void CanaryService::Impl::start_run(const canary::Start& start, bool amdgpu, bool idle_only) {
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
  std::vector<std::string> rest = {"--backend", "auto", "--tier", std::to_string(start.tier)};
  if (idle_only) rest.emplace_back("--idle-only");
  const auto own = rest.size();
  for (const auto& name : start.only) {
    if (name == "userptr_cow") continue;
    rest.emplace_back("--only");
    rest.push_back(name);
  }
  if (start.tier > 0 && (start.only.empty() || rest.size() > own)) add(std::move(rest));
  next_worker(start.device, deep ? kDeepLimitSeconds : kFastLimitSeconds);
}

void CanaryService::Impl::next_worker(const std::string& device, double limit_s) {
  auto& lines = queue[device];
  if (lines.empty()) {
    end_run(device, {});
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
    stuck[device].insert(canary::process_id(pid));
    on.log(Severity::Warning, "a canary on " + device + " does not end although it was killed: it hangs in the kernel");
  };
  auto process = canary::WorkerProcess::start(io, launch.program, launch.arguments, limit_s + launch.grace_s,
                                              std::move(handlers), launch.stop);
  if (!process) {
    on.log(Severity::Warning, process.error().text);
    lines.clear();
    // Later, as every other end comes: whoever asked for the run is told of its start first.
    boost::asio::post(io, [weak = weak_from_this(), device, text = process.error().text] {
      if (const auto self = weak.lock()) self->end_run(device, text);
    });
    return;
  }
  running[device] = std::move(*process);
}

void CanaryService::Impl::end_run(const std::string& device, const std::string& problem) {
  running.erase(device);
  scheduler.finished(device, seconds(clock.now().steady));
  if (on.run_ended) on.run_ended(device, problem);
}

void CanaryService::Impl::measured(const canary::Measurement& m, const std::string& line, bool keep) {
  if (keep) keep_line(line);
  if (const auto pid = m.notes.find("pid"); m.status == canary::Status::Stuck && pid != m.notes.end())
    stuck[m.device].insert(canary::process_id(std::max(1, std::atoi(pid->second.c_str()))));
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
  const off_t end = lseek(file.get(), 0, SEEK_CUR);
  read_resets(end - static_cast<off_t>(whole.size()));  // written by others just before
  read_to = end;
  if (end <= kMostBytes) return;
  rename(options.results.c_str(), (options.results + ".1").c_str());
  read_to = 0;
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

std::string CanaryService::overdue(const std::string& pci) const {
  return impl_->scheduler.overdue(pci);
}

void CanaryService::look() {
  impl_->look();
}

void CanaryService::ask_now(const std::string& pci, int tier) {
  impl_->scheduler.ask_now(pci, std::min(tier, impl_->options.schedule.most_tier));
}

Result<void> CanaryService::run_now(const std::string& pci, int tier, std::vector<std::string> only) {
  const auto devices = impl_->on.devices();
  auto d = std::ranges::find(devices, pci, &canary::DeviceSituation::device);
  if (d == devices.end()) return fail(ErrorCode::Unavailable, "the GPU at " + pci + " has not been read yet");
  auto situation = *d;
  situation.stuck = situation.stuck || impl_->is_stuck(pci);
  if (const auto why = canary::hindrance(situation); !why.empty())
    return fail(ErrorCode::Unavailable, "no canary can run on " + pci + " now: " + std::string(why));
  const bool probe_alone = std::ranges::all_of(only, [](const auto& name) { return name == "userptr_cow"; });
  if (!only.empty() && !probe_alone) tier = std::max(tier, 1);
  if (!situation.amdgpu && (tier == 0 || (!only.empty() && probe_alone)))
    return fail(ErrorCode::Unavailable, "userptr_cow, which is all of tier 0, is for AMD GPUs; ask for tier 1");
  if (!impl_->scheduler.claim(situation))
    return fail(ErrorCode::Exhausted, "a canary runs on " + pci + " or beside it already");
  impl_->start_run({pci, tier, std::move(only)}, situation.amdgpu, false);
  return {};
}

void CanaryService::cancel(const std::string& pci) {
  impl_->queue[pci].clear();
  if (const auto it = impl_->running.find(pci); it != impl_->running.end()) it->second->stop();
}

void CanaryService::want(const std::string& pci, const std::string& canary) {
  impl_->scheduler.want(pci, canary, seconds(impl_->clock.now().steady));
}

}  // namespace gpuhealth::daemon
