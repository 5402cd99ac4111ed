// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/child.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>

#include "canary/worker/bench.hpp"
#include "canary/worker/environment.hpp"
#include "canary/worker/nvml.hpp"
#include "canary/worker/userptr.hpp"

namespace gpuhealth::canary {
double now_s() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

Measurement line_without_value(const CanaryInfo& row, const RunOptions& options, Status status, std::string reason,
                               std::string device, const std::map<std::string, std::string>& software) {
  Measurement m;
  m.canary = row.canary;
  m.metric = row.metric;
  m.unit = row.unit;
  m.better = row.better;
  m.tier = row.tier;
  m.status = status;
  m.reason = std::move(reason);
  m.backend = options.backend;
  m.device = std::move(device);
  m.time = now_s();
  m.software = software;
  m.epoch = epoch_of(software);
  return m;
}

namespace {

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

void set_limits(const RunOptions& options) {
  const auto seconds = static_cast<rlim_t>(60 + options.deadline_s * static_cast<double>(options.canaries.size()));
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, 2 * seconds);
  limit(RLIMIT_FSIZE, 256ULL << 20U);
  limit(RLIMIT_NPROC, 4096);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

class Out {
 public:
  explicit Out(int fd) : fd_(fd) {}
  void word(const std::string& text) const { put("@" + text + "\n"); }
  void send(const Measurement& m) const { put(to_json_line(m) + "\n"); }

 private:
  void put(const std::string& text) const {
    // One write a line: a process that dies leaves whole lines.
    if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(3);
  }
  int fd_;
};

// The share of their runnable time that our threads did not run: another's use of the processors, or our own crowd.
double waited_share() {
  double ran = 0;
  double waited = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  while (const dirent* entry = readdir(tasks)) {
    std::ifstream in(std::string("/proc/self/task/") + entry->d_name + "/schedstat");
    double r = 0;
    double w = 0;
    if (in >> r >> w) {
      ran += r;
      waited += w;
    }
  }
  closedir(tasks);
  return ran + waited > 0 ? waited / (ran + waited) : 0;
}

void unsupported(const Out& out, const RunOptions& options, const std::string& canary, Status status,
                 const std::string& reason, const std::map<std::string, std::string>& software) {
  const std::string device = options.device ? to_string(*options.device) : "";
  for (const auto& row : metrics_of(canary))
    out.send(line_without_value(row, options, status, reason, device, software));
}

void run_ioctl(const Out& out, const RunOptions& options) {
  const std::string name = "userptr_cow";
  out.word("start " + name);
  const auto nodes = open_amdgpu_nodes(options.device);
  if (!nodes) {
    unsupported(out, options, name, Status::Unsupported, nodes.error().text, software_of("", ""));
    out.word("end " + name);
    return;
  }
  for (const auto& node : *nodes) {
    const auto cpu = cpu_time();
    const auto probe = probe_pinning(userptr_pin(node.fd.get()));
    Measurement m;
    m.canary = name;
    m.metric = "worst";
    m.unit = "ms";
    m.tier = 0;
    m.backend = options.backend;
    m.device = node.pci.empty() ? node.path : node.pci;
    m.device_name = "amdgpu";
    m.time = now_s();
    m.software = software_of("", node.pci);
    m.epoch = epoch_of(m.software);
    m.notes["node"] = node.path;
    m.notes["retries"] = std::to_string(probe.retries);
    m.mappings = probe.mappings;
    for (const auto& mapping : probe.mappings) m.value = std::max(m.value.value_or(0), mapping.ms);
    m.samples = static_cast<int>(probe.mappings.size());
    if (!probe.error.empty() || !probe.inconclusive.empty()) {
      m.status = probe.error.empty() ? Status::Unsupported : Status::Failed;
      m.reason = probe.error.empty() ? "inconclusive: " + probe.inconclusive : probe.error;
      m.value.reset();
      m.mappings.clear();
    }
    m.user_ms = cpu_time().user_ms - cpu.user_ms;
    m.system_ms = cpu_time().system_ms - cpu.system_ms;
    out.send(m);
  }
  out.word("end " + name);
}

Result<std::unique_ptr<Gpu>> open_gpu(const RunOptions& options) {
  const Selection selection{options.device, options.allow_cpu};
  if (options.backend == "cuda") return open_cuda(selection);
  if (options.backend == "hip") return open_hip(selection);
  return open_opencl(selection);
}

// A second client, for two_process: forked before any runtime is loaded, which does not survive a fork.
struct Peer {
  pid_t pid = -1;
  int fd = -1;
};

void serve_as_peer(const RunOptions& options, int fd) {
  char word = 0;
  if (read(fd, &word, 1) != 1) _exit(0);
  auto gpu = open_gpu(options);
  word = gpu ? 'r' : 'x';
  if (write(fd, &word, 1) != 1 || !gpu) _exit(0);
  {
    DeviceMemory out(**gpu, 256);
    while ((*gpu)->ok() && recv(fd, &word, 1, MSG_DONTWAIT) != 1) {
      (*gpu)->launch(0, Kernel::Spin, 1, 64, {out.arg(), 2U});
      (*gpu)->finish(0);
    }
  }
  _exit(0);
}

Peer start_peer(const RunOptions& options) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    serve_as_peer(options, ends[1]);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

double launch_us(Gpu& gpu, const DeviceMemory& memory) {
  Samples samples;
  for (int i = 0; i < 300 && gpu.ok(); ++i) {
    const double began = wall_us();
    gpu.launch(0, Kernel::Nop, 1, 64, {memory.arg()});
    gpu.finish(0);
    if (i >= 50) samples.add(wall_us() - began);
  }
  return samples.quantile(0.5);
}

void run_two_process(Bench& bench, const Peer& peer) {
  char word = 'g';
  DeviceMemory memory(bench.gpu, 4096);
  const double alone = launch_us(bench.gpu, memory);
  if (peer.fd < 0 || write(peer.fd, &word, 1) != 1 || read(peer.fd, &word, 1) != 1 || word != 'r')
    return bench.unsupported("two_process", "a second process cannot use the device");
  const double beside = launch_us(bench.gpu, memory);
  word = 's';
  if (write(peer.fd, &word, 1) != 1) return;
  bench.note("alone_us", std::to_string(alone));
  bench.note("beside_us", std::to_string(beside));
  bench.line("two_process", "stretch").value = beside / std::max(alone, 1e-3);
}

class GpuRun {
 public:
  GpuRun(const RunOptions& options, const Out& out) : options_(options), out_(out) {}
  void run();

 private:
  void send(Measurement m);
  void tell_foreign(const std::vector<int>& own);
  const RunOptions& options_;
  const Out& out_;
  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<Nvml> nvml_;
  std::map<std::string, std::string> software_;
  std::string pci_;  // empty for a CPU
};

void GpuRun::send(Measurement m) {
  m.backend = gpu_->facts.backend;
  m.device = gpu_->facts.device;
  m.device_name = gpu_->facts.name;
  m.time = now_s();
  m.software = software_;
  m.epoch = epoch_of(software_);
  if (gpu_->facts.cpu) m.notes["cpu"] = "true";
  // Asking takes as long as a small canary: only beside numbers that clocks and link explain.
  const bool explained = m.canary == "runtime" || m.canary == "gather" || m.unit.ends_with("/s");
  if (!pci_.empty() && explained) {
    auto state = card_state("", pci_);
    for (auto& [name, value] : nvml_->state()) state[name] = value;
    const bool copies = m.unit == "GB/s" && (m.canary == "h2d_pin" || m.canary == "d2h_pin");
    if (copies && state.contains("link_negotiated_gb_s")) m.notes["ideal"] = state["link_negotiated_gb_s"];
    m.notes.merge(state);
  }
  out_.send(m);
}

// Where this process' own number is not in the list, the list is of another process namespace: one of them is us.
void GpuRun::tell_foreign(const std::vector<int>& own) {
  auto pids = nvml_->compute_pids();
  const auto all = pids.size();
  std::erase_if(pids, [&](int pid) { return std::ranges::find(own, pid) != own.end(); });
  if (pids.size() == all && !pids.empty()) pids.pop_back();
  for (const int pid : pids) out_.word("foreign " + std::to_string(pid));
}

void GpuRun::run() {
  const bool wants_peer = std::ranges::find(options_.canaries, "two_process") != options_.canaries.end();
  const Peer peer = wants_peer ? start_peer(options_) : Peer{};
  out_.word("start runtime");
  if (options_.device && options_.backend != "ioctl" && asleep("", to_string(*options_.device))) {
    for (const auto& canary : options_.canaries)
      unsupported(out_, options_, canary, Status::Unsupported, "the GPU sleeps, and is left asleep",
                  software_of("", ""));
    return;
  }
  if (options_.idle_only && options_.device && options_.backend != "ioctl") {
    // Other users' processes may be hidden in /proc; NVIDIA's library knows them, and makes no context.
    if (const auto pids = Nvml(to_string(*options_.device)).compute_pids(); !pids.empty()) {
      for (const auto& canary : options_.canaries)
        unsupported(out_, options_, canary, Status::Busy,
                    "pid " + std::to_string(pids.front()) + " computes on the GPU (NVML); not measured",
                    software_of("", to_string(*options_.device)));
      out_.word("end runtime");
      return;
    }
  }
  auto opened = open_gpu(options_);
  if (!opened) {
    const auto software = software_of("", options_.device ? to_string(*options_.device) : "");
    const bool absent = opened.error().code == ErrorCode::NotFound || opened.error().text.starts_with("no ");
    for (const auto& canary : options_.canaries)
      unsupported(out_, options_, canary, absent ? Status::Unsupported : Status::Failed, opened.error().text, software);
    out_.word("end runtime");
    return;
  }
  gpu_ = std::move(*opened);
  if (parse_pci_address(gpu_->facts.device)) pci_ = gpu_->facts.device;
  nvml_ = std::make_unique<Nvml>(pci_);
  software_ = software_of("", pci_);
  software_["runtime"] = gpu_->facts.runtime;
  software_["backend"] = gpu_->facts.backend;
  out_.word("device " + gpu_->facts.device);
  if (gpu_->facts.cpu) out_.word("cpu");
  Bench bench(*gpu_, [this](const Measurement& m) { send(m); });
  bench.begin();
  const double began = wall_us();
  bench.prepare();
  gpu_->facts.start_ms += (wall_us() - began) / 1e3;
  bench.line("runtime", "start").value = gpu_->facts.start_ms;
  bench.note("arch", gpu_->facts.arch);
  bench.note("units", std::to_string(gpu_->facts.units));
  if (nvml_->partitioned()) bench.note("partition", "MIG");
  if (gpu_->facts.host_clock) bench.note("clock", "host: the device's time stamps cannot be believed");
  if (std::ranges::find(options_.canaries, "runtime") != options_.canaries.end()) bench.finish("runtime");
  out_.word("end runtime");
  bench.warm();
  for (const auto& canary : options_.canaries) {
    if (canary == "runtime") continue;
    const auto rows = all_gpu_canaries();
    const auto row = std::ranges::find(rows, canary, &SuiteRow::canary);
    out_.word("start " + canary);
    bench.begin();
    if (row != rows.end())
      row->run(bench);
    else if (canary == "two_process")
      run_two_process(bench, peer);
    else
      bench.unsupported(canary, "this backend does not run it");
    bench.finish(canary);
    out_.word("end " + canary);
  }
  tell_foreign({static_cast<int>(getpid()), static_cast<int>(peer.pid)});
}

}  // namespace

void run_child(const RunOptions& options, int out_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_limits(options);
  clean_environment();
  const Out out(out_fd);
  if (options.backend == "ioctl") {
    run_ioctl(out, options);
  } else {
    GpuRun(options, out).run();
  }
  out.word("wait " + std::to_string(waited_share()));
  out.word("done");
  // Not exit(): some runtimes hang or crash in their destructors, after everything has been said.
  _exit(0);
}

}  // namespace gpuhealth::canary
