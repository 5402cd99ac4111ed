// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/supervisor.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "canary/gate.hpp"
#include "canary/worker/environment.hpp"
#include "core/fd.hpp"

namespace gpuhealth::canary {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kStartSeconds = 90;  // of a runtime: a cold compiler takes its time
constexpr double kDeathSeconds = 3;   // after SIGKILL; longer, and it hangs in the kernel
constexpr int kMostChildren = 4;      // of one run
constexpr std::size_t kMostLine = 1U << 16U;
constexpr std::size_t kKeptStderr = 600;
constexpr int kTickMs = 20;  // a job that appears stops a run within 50 ms

std::uint64_t children_ticks() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto us =
      (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  return static_cast<std::uint64_t>(us) * static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)) / 1000000;
}

// New processes that open the GPU while a run is on. Cheap: /proc is listed, and only processes that are young are
// looked into.
class Watch {
 public:
  Watch() { list(known_); }
  // The pid and name of a stranger; nothing while there is none.
  std::optional<std::string> stranger(pid_t own_group);

 private:
  static void list(std::set<int>& out);
  static bool uses_gpu(int pid);
  std::set<int> known_;
  std::vector<std::pair<int, Clock::time_point>> young_;
};

void Watch::list(std::set<int>& out) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc)) {
    if (const int pid = std::atoi(entry->d_name); pid > 0) out.insert(pid);
  }
  closedir(proc);
}

bool Watch::uses_gpu(int pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* fds = opendir(folder.c_str());
  if (fds == nullptr) return false;
  bool compute = false;
  std::map<std::string, int> nvidia;
  while (const dirent* entry = readdir(fds)) {
    std::array<char, 64> target{};
    if (readlink((folder + "/" + entry->d_name).c_str(), target.data(), target.size() - 1) <= 0) continue;
    const std::string_view path = target.data();
    compute = compute || path == "/dev/kfd";
    if (is_nvidia_node(path)) ++nvidia[std::string(path)];
  }
  closedir(fds);
  return compute || std::ranges::any_of(nvidia, [&](const auto& node) {
           return !only_manages("/proc/" + std::to_string(pid), node.second);
         });
}

std::optional<std::string> Watch::stranger(pid_t own_group) {
  std::set<int> now;
  list(now);
  const auto time = Clock::now();
  for (const int pid : now) {
    if (!known_.contains(pid) && getpgid(pid) != own_group) young_.emplace_back(pid, time);
  }
  known_ = std::move(now);
  std::erase_if(young_,
                [&](const auto& y) { return !known_.contains(y.first) || time - y.second > std::chrono::seconds(30); });
  for (const auto& [pid, since] : young_) {
    if (!uses_gpu(pid)) continue;
    std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(in, name);
    return "pid " + std::to_string(pid) + " (" + name + ")";
  }
  return std::nullopt;
}

struct Ending {
  enum class Kind : std::uint8_t { Done, Died, Late, Stranger, Told, Stuck } kind = Kind::Died;
  std::string text;
};

class Child {
 public:
  Child(const RunOptions& options, int signals) : options_(options), signals_(signals) {}
  bool start();
  // Reads until it is over. Lines go into `lines`, the canary that ran into `running`.
  Ending follow(const std::function<void(const std::string&)>& progress);

  std::vector<Measurement> lines;
  std::set<std::string> done;
  std::string running = "runtime";
  std::string device;
  std::vector<std::string> foreign;
  double waited = 0;
  bool cpu = false;
  pid_t pid = -1;

 private:
  void take(std::string_view line, const std::function<void(const std::string&)>& progress);
  void read_lines(const std::function<void(const std::string&)>& progress);
  void read_stderr();
  Ending kill_it(Ending ending);
  Ending reap();
  [[nodiscard]] double deadline() const { return running == "runtime" ? kStartSeconds : options_.deadline_s; }

  const RunOptions& options_;
  int signals_;
  Fd out_, err_, pidfd_;
  std::string partial_, stderr_;
  Clock::time_point since_ = Clock::now();
  bool finished_ = false;
  Watch watch_;
};

bool Child::start() {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) return false;
  pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    // Runtimes print to either; neither may reach our output.
    dup2(err[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    run_child(options_, out[1]);
  }
  setpgid(pid, pid);
  close(out[1]);
  close(err[1]);
  out_.reset(out[0]);
  err_.reset(err[0]);
  fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  fcntl(err_.get(), F_SETFL, O_NONBLOCK);
  pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return static_cast<bool>(pidfd_);
}

void Child::take(std::string_view line, const std::function<void(const std::string&)>& progress) {
  auto said = parse_child_line(line);
  switch (said.kind) {
    case ChildLine::Kind::Measurement:
      if (lines.size() < 4096) lines.push_back(std::move(said.measurement));
      break;
    case ChildLine::Kind::Start:
      running = said.word;
      since_ = Clock::now();
      progress(running);
      break;
    case ChildLine::Kind::End:
      done.insert(said.word);
      since_ = Clock::now();
      break;
    case ChildLine::Kind::Device:
      device = said.word;
      break;
    case ChildLine::Kind::Foreign:
      foreign.push_back(said.word);
      break;
    case ChildLine::Kind::Wait:
      waited = std::strtod(said.word.c_str(), nullptr);
      break;
    case ChildLine::Kind::Cpu:
      cpu = true;
      break;
    case ChildLine::Kind::Done:
      finished_ = true;
      break;
    case ChildLine::Kind::Nothing:
    case ChildLine::Kind::Garbage:
      break;
  }
}

void Child::read_lines(const std::function<void(const std::string&)>& progress) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = read(out_.get(), buffer.data(), buffer.size());
    if (n <= 0) return;
    partial_.append(buffer.data(), static_cast<std::size_t>(n));
    std::size_t from = 0;
    for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', from)) {
      take(std::string_view(partial_).substr(from, end - from), progress);
      from = end + 1;
    }
    partial_.erase(0, from);
    if (partial_.size() > kMostLine) partial_.clear();  // no line of ours is so long
  }
}

void Child::read_stderr() {
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(err_.get(), buffer.data(), buffer.size())) > 0;) {
    stderr_.append(buffer.data(), static_cast<std::size_t>(n));
    if (stderr_.size() > 2 * kKeptStderr) stderr_.erase(0, stderr_.size() - kKeptStderr);
  }
}

Ending Child::reap() {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
  kill(-pid, SIGKILL);  // what it left behind
  read_stderr();
  if (finished_) return {Ending::Kind::Done, ""};
  std::string how = info.si_code == CLD_EXITED ? "the process ended with code " + std::to_string(info.si_status)
                                               : "the process was ended by signal " + std::to_string(info.si_status) +
                                                     " (" + strsignal(info.si_status) + ")";
  for (auto& c : stderr_) {
    if (c == '\n') c = ' ';
  }
  if (!stderr_.empty())
    how += "; it had printed: " + stderr_.substr(stderr_.size() > kKeptStderr ? stderr_.size() - kKeptStderr : 0);
  return {Ending::Kind::Died, how};
}

Ending Child::kill_it(Ending ending) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  pollfd death{pidfd_.get(), POLLIN, 0};
  if (poll(&death, 1, static_cast<int>(kDeathSeconds * 1000)) <= 0)
    return {Ending::Kind::Stuck,
            ending.text + "; killed, and it does not end: it hangs in the kernel (pid " + std::to_string(pid) + ")"};
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
  return ending;
}

Ending Child::follow(const std::function<void(const std::string&)>& progress) {
  since_ = Clock::now();
  auto next_watch = Clock::now();
  for (;;) {
    std::array<pollfd, 4> fds = {
        {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}, {signals_, POLLIN, 0}}};
    // A closed pipe is always readable: it is no longer asked.
    if (finished_) fds[0].fd = -1;
    poll(fds.data(), fds.size(), kTickMs);
    const bool gone = (fds[2].revents & POLLIN) != 0;
    read_lines(progress);
    read_stderr();
    if ((fds[0].revents & POLLHUP) != 0 || (fds[1].revents & POLLHUP) != 0) {
      pollfd death{pidfd_.get(), POLLIN, 0};
      poll(&death, 1, kTickMs);
    }
    if (gone) {
      read_lines(progress);
      return reap();
    }
    if ((fds[3].revents & POLLIN) != 0) return kill_it({Ending::Kind::Told, "stopped on request"});
    const double took = Seconds(Clock::now() - since_).count();
    if (took > deadline()) {
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "no result within %.0f s", deadline());
      return kill_it({Ending::Kind::Late, text.data()});
    }
    if (!cpu && !device.empty() && Clock::now() >= next_watch) {
      next_watch = Clock::now() + std::chrono::milliseconds(kTickMs);
      if (const auto who = watch_.stranger(pid))
        return kill_it({Ending::Kind::Stranger, *who + " began to use the GPU"});
    }
  }
}

Status status_of(Ending::Kind kind) {
  switch (kind) {
    case Ending::Kind::Late:
      return Status::Timeout;
    case Ending::Kind::Stuck:
      return Status::Stuck;
    case Ending::Kind::Stranger:
    case Ending::Kind::Told:
      return Status::Busy;
    case Ending::Kind::Done:
    case Ending::Kind::Died:
      break;
  }
  return Status::BackendFailed;
}

// Lines for a canary of which the child said nothing.
void fill_in(std::vector<Measurement>& lines, const RunOptions& options, const std::string& canary, Status status,
             const std::string& reason, const std::string& device, pid_t left_behind = -1) {
  for (const auto& row : metrics_of(canary)) {
    const bool there =
        std::ranges::any_of(lines, [&](const auto& m) { return m.canary == row.canary && m.metric == row.metric; });
    if (there) continue;
    const std::string about = !device.empty() ? device : options.device ? to_string(*options.device) : "";
    lines.push_back(line_without_value(row, options, status, reason, about,
                                       software_of("", parse_pci_address(about) ? about : "")));
    if (left_behind > 0) lines.back().notes["pid"] = std::to_string(left_behind);
  }
}

int open_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void judge_gate(RunReport& report, const GateVerdict& verdict, const std::map<std::string, std::string>& environment) {
  for (auto& m : report.lines) {
    m.gate = verdict.gate;
    m.environment = environment;
    // Measured, and not judged; what failed or is wrong stays so.
    if (verdict.busy && m.status == Status::Ok) {
      m.status = Status::Busy;
      m.reason = verdict.reason;
    }
  }
}

// Two looks, because engine time is known from its growth.
GateVerdict in_use(const GateLook& before, const std::string& pci) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * kTickMs));
  return compare_looks(before, look_for_clients("", pci), {static_cast<int>(getpid())});
}

// A context beside somebody else's costs them time: only what needs none is left.
void leave_out(RunOptions& options, RunReport& report, const std::string& reason) {
  std::erase_if(options.canaries, [&](const std::string& canary) {
    const auto rows = metrics_of(canary);
    if (!rows.empty() && rows.front().tier == 0) return false;
    fill_in(report.lines, options, canary, Status::Busy, reason + "; not measured", "");
    return true;
  });
}

}  // namespace

ChildLine parse_child_line(std::string_view line) {
  ChildLine out;
  if (line.empty()) return out;
  if (line.front() != '@') {
    auto m = parse_measurement(line);
    out.kind = m ? ChildLine::Kind::Measurement : ChildLine::Kind::Garbage;
    if (m) out.measurement = std::move(*m);
    return out;
  }
  line.remove_prefix(1);
  const auto space = std::min(line.find(' '), line.size());
  const auto verb = line.substr(0, space);
  out.word = line.substr(std::min(space + 1, line.size()), 200);
  using Kind = ChildLine::Kind;
  for (const auto& [name, kind] : {std::pair<std::string_view, Kind>{"start", Kind::Start},
                                   {"end", Kind::End},
                                   {"device", Kind::Device},
                                   {"foreign", Kind::Foreign},
                                   {"wait", Kind::Wait},
                                   {"cpu", Kind::Cpu},
                                   {"done", Kind::Done}}) {
    if (verb == name) out.kind = kind;
  }
  if (out.kind == Kind::Nothing) out.kind = Kind::Garbage;
  return out;
}

RunReport supervise(const RunOptions& options, const std::function<void(const std::string&)>& progress) {
  RunReport report;
  const auto environment = workarounds();
  const Fd signals(open_signals());
  const std::string pci = options.device ? to_string(*options.device) : "";
  const auto before = look_for_clients("", pci);
  const auto ticks_before = children_ticks();
  RunOptions rest = options;
  GateVerdict early;  // what is known before the second look
  std::string device;
  if (options.idle_only) {
    early = in_use(before, pci);
    if (early.busy) leave_out(rest, report, early.reason);
  }
  double waited = 0;
  bool cpu = false;
  std::set<int> own = {static_cast<int>(getpid())};
  for (int i = 0; i < kMostChildren && !rest.canaries.empty(); ++i) {
    Child child(rest, signals.get());
    if (!child.start()) {
      for (const auto& canary : rest.canaries)
        fill_in(report.lines, options, canary, Status::Failed, "no process could be started", device);
      break;
    }
    own.insert(static_cast<int>(child.pid));
    const auto ending = child.follow(progress);
    report.lines.insert(report.lines.end(), std::make_move_iterator(child.lines.begin()),
                        std::make_move_iterator(child.lines.end()));
    if (!child.device.empty()) device = child.device;
    waited = std::max(waited, child.waited);
    cpu = cpu || child.cpu;
    if (!child.foreign.empty() && !early.busy) {
      early.busy = true;
      early.reason = "pid " + child.foreign.front() + " computes on the GPU (NVML)";
    }
    std::erase_if(rest.canaries, [&](const auto& c) { return child.done.contains(c); });
    if (ending.kind == Ending::Kind::Done) break;
    // A runtime that cannot be loaded is asked once; one that dies in a canary may do the others.
    const bool all = child.running == "runtime" || ending.kind == Ending::Kind::Stuck ||
                     ending.kind == Ending::Kind::Stranger || ending.kind == Ending::Kind::Told ||
                     i + 1 == kMostChildren;
    const auto failed = all ? rest.canaries : std::vector<std::string>{child.running};
    for (const auto& canary : failed)
      fill_in(report.lines, options, canary, status_of(ending.kind), ending.text, device,
              ending.kind == Ending::Kind::Stuck ? child.pid : -1);
    std::erase_if(rest.canaries, [&](const auto& c) { return all || c == child.running; });
    if (ending.kind == Ending::Kind::Stranger || ending.kind == Ending::Kind::Told)
      early = {true, Gate::Unknown, ending.text};
    if (ending.kind == Ending::Kind::Stuck) {
      report.stuck = true;
      break;
    }
  }
  for (const auto& canary : options.canaries)
    fill_in(report.lines, options, canary, Status::Failed, "the run ended before it", device);
  const auto after = look_for_clients("", parse_pci_address(device) ? device : pci);
  auto verdict =
      cpu ? compare_cpu(before, after, children_ticks() - ticks_before, waited) : compare_looks(before, after, own);
  if (early.busy) {
    verdict.busy = true;
    verdict.reason = early.reason;
  }
  judge_gate(report, verdict, environment);
  return report;
}

}  // namespace gpuhealth::canary
