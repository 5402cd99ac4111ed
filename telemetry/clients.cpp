// SPDX-License-Identifier: Apache-2.0
#include "telemetry/clients.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/fd.hpp"
#include "telemetry/fdinfo.hpp"
#include "telemetry/gpu_nodes.hpp"
#include "telemetry/proc.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr std::uint64_t kRescanEvery = 6;        // looks between two listings of a process that uses no GPU
constexpr double kBusyPercent = 80;              // of one processor: worth asking what it has loaded
constexpr double kSystemPercent = 50;            // worth asking which thread
constexpr std::size_t kMostMaps = 4u << 20;      // a process that works on a GPU has a thousand of them
constexpr unsigned kMapLooks = 3;                // libraries are loaded early
constexpr ino_t kHostPidNamespace = 4026531836;  // PROC_PID_INIT_INO

std::string read_all(const std::string& path, std::size_t most = 65536) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> buffer;
  while (file && text.size() < most) {
    const auto n = ::read(file.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

// Calls `each` with every number that names an entry; false when the folder cannot be opened.
template <class Each>
bool for_each_number(const std::string& folder, Each each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return false;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error == std::errc() && end == name.data() + name.size()) each(value, std::string(name));
  }
  return true;
}

struct Spent {
  std::uint64_t user = 0, system = 0;
};

// What is remembered of a process between looks.
struct Known {
  std::uint64_t started = 0;
  std::uint64_t scanned = 0;  // the look
  std::optional<SteadyTime> at;
  Spent spent;
  bool user_of_gpu = false;
  bool library = false;
  unsigned map_looks = 0;
  std::map<std::string, std::uint64_t> engine_ns;  // "0000:03:00.0 client 7 gfx"
  std::map<std::uint32_t, Spent> threads;          // of the look before, where it was asked
  std::optional<std::uint64_t> read_bytes;
};

struct Usage {
  GpuClient client;
  std::optional<std::uint64_t> kfd_bytes;  // of video memory; partitions of one card add up
  std::optional<std::uint64_t> drm_bytes;
  std::map<std::string, std::uint64_t> engine_ns;  // by client and engine
};

}  // namespace

struct ClientScanner::Impl {
  std::string root;
  std::uint32_t own = 0;
  Progress* progress = nullptr;
  std::map<std::uint32_t, Known> known;
  std::uint64_t looks = 0;
  double ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));

  // Of the look that runs.
  GpuNodes nodes;
  std::vector<PciAddress> gpus;
  SteadyTime now;
  bool complete = true;
  std::map<PciAddress, std::map<std::uint32_t, Usage>> found;

  void note(const PciAddress& gpu, std::uint32_t pid, std::string_view what) const {
    if (progress != nullptr) progress->at(pack(gpu), std::string(what) + " of pid " + std::to_string(pid));
  }
  [[nodiscard]] std::string process(std::uint32_t pid) const { return root + "/proc/" + std::to_string(pid); }

  void read_kfd();
  void visit(std::uint32_t pid, std::set<std::uint32_t>& seen);
  bool list_files(std::uint32_t pid, std::uint64_t started);
  void see_file(std::uint32_t pid, std::uint64_t started, const std::string& fd);
  void read_drm(std::uint32_t pid, const std::string& fd, const std::string& node);
  [[nodiscard]] bool same_node(const std::string& file, const std::string& node, std::uint64_t started) const;
  [[nodiscard]] bool is_own(std::uint32_t pid) const;
  void measure(std::uint32_t pid, const ProcStat& stat, Known& was);
  void measure_thread(std::uint32_t pid, Known& was, double seconds, GpuClient& spends);
  void finish(std::uint32_t pid, const ProcStat& stat, Known& was, const GpuClient& spends);
};

ClientScanner::ClientScanner(std::string root, std::uint32_t own, Progress* progress)
    : impl_(std::make_unique<Impl>()) {
  impl_->root = std::move(root);
  impl_->own = own;
  impl_->progress = progress;
}
ClientScanner::~ClientScanner() = default;
ClientScanner::ClientScanner(ClientScanner&&) noexcept = default;
ClientScanner& ClientScanner::operator=(ClientScanner&&) noexcept = default;

// vram_GPUID and queues/*/gpuid of each compute process. sdma_GPUID and cu_occupancy, beside them, make the kernel work
// and are not read.
void ClientScanner::Impl::read_kfd() {
  const std::string list = root + "/sys/class/kfd/kfd/proc";
  for_each_number(list, [&](std::uint32_t pid, const std::string& name) {
    const auto folder = list + "/" + name;
    for (const auto& [id, gpu] : nodes.kfd) {
      note(gpu, pid, "vram");
      const auto text = read_text(folder + "/vram_" + std::to_string(id));
      if (!text) continue;
      std::uint64_t bytes = 0;
      std::from_chars(text->data(), text->data() + text->size(), bytes);
      if (bytes == 0) continue;  // there is a file for every GPU, used or not
      auto& usage = found[gpu][pid];
      usage.client.open = true;
      usage.kfd_bytes = usage.kfd_bytes.value_or(0) + bytes;
    }
    for_each_number(folder + "/queues", [&](std::uint32_t, const std::string& queue) {
      const auto text = read_text_or_empty(folder + "/queues/" + queue + "/gpuid");
      std::uint64_t id = 0;
      std::from_chars(text.data(), text.data() + text.size(), id);
      const auto gpu = nodes.kfd.find(id);
      if (gpu == nodes.kfd.end()) return;
      auto& client = found[gpu->second][pid].client;
      client.open = client.queues = true;
    });
  });
}

// The node that the process opened is the one that is there now. A node of the same number that was made later, after
// an unplug, has another inode; a container's own copy of it is trusted where the process is younger than the node.
bool ClientScanner::Impl::same_node(const std::string& file, const std::string& node, std::uint64_t started) const {
  if (!root.empty()) return true;  // a captured tree has no nodes
  struct stat opened{}, present{};
  if (stat(file.c_str(), &opened) != 0 || stat(("/dev/dri/" + node).c_str(), &present) != 0) return false;
  if (opened.st_dev == present.st_dev && opened.st_ino == present.st_ino) return true;
  if (opened.st_rdev != present.st_rdev) return false;
  timespec boot{}, wall{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  const double booted = static_cast<double>(wall.tv_sec - boot.tv_sec);
  return booted + static_cast<double>(started) / ticks_per_s > static_cast<double>(present.st_ctim.tv_sec) + 2;
}

void ClientScanner::Impl::read_drm(std::uint32_t pid, const std::string& fd, const std::string& node) {
  const auto& gpu = nodes.drm.at(node).gpu;
  note(gpu, pid, "fdinfo");
  const auto info = parse_drm_fdinfo(read_all(process(pid) + "/fdinfo/" + fd));
  auto& usage = found[gpu][pid];
  usage.client.open = true;
  if (info.driver.empty()) return;
  // The same client again, through a descriptor that was passed on: its engines and memory are counted once.
  const auto key = "client " + info.client_id + " ";
  if (!info.client_id.empty() && usage.engine_ns.contains(key)) return;
  usage.engine_ns[key] = 0;
  for (const auto& [engine, ns] : info.engine_ns) usage.engine_ns[key + engine] = ns;
  if (info.vram_bytes) usage.drm_bytes = usage.drm_bytes.value_or(0) + *info.vram_bytes;
  usage.client.gtt_bytes += info.gtt_bytes.value_or(0);
  usage.client.evicted_bytes += info.evicted_bytes;
}

void ClientScanner::Impl::see_file(std::uint32_t pid, std::uint64_t started, const std::string& fd) {
  const auto file = process(pid) + "/fd/" + fd;
  std::array<char, 128> target{};
  const auto n = readlink(file.c_str(), target.data(), target.size());
  if (n <= 5) return;
  std::string_view path(target.data(), static_cast<std::size_t>(n));
  constexpr std::string_view dri = "/dev/dri/";
  if (path.starts_with(dri)) {
    const std::string node(path.substr(dri.size()));
    const auto it = nodes.drm.find(node);  // not so: one that has left, or that is not to be touched
    if (it == nodes.drm.end()) return;
    if (!same_node(file, node, started)) {
      complete = false;
      return;
    }
    if (!it->second.fdinfo) {
      found[it->second.gpu][pid].client.open = true;  // that much the link says
      complete = false;
      return;
    }
    read_drm(pid, fd, node);
  } else if (path.starts_with("/dev/nvidia")) {
    if (const auto it = nodes.nvidia.find(std::string(path.substr(5))); it != nodes.nvidia.end())
      found[it->second][pid].client.open = true;
  }
}

bool ClientScanner::Impl::list_files(std::uint32_t pid, std::uint64_t started) {
  errno = 0;
  const bool listed =
      for_each_number(process(pid) + "/fd", [&](std::uint32_t, const std::string& fd) { see_file(pid, started, fd); });
  return listed || errno == ENOENT || errno == ESRCH;  // it has ended
}

bool ClientScanner::Impl::is_own(std::uint32_t pid) const {
  for (int depth = 0; own != 0 && pid > 1 && depth < 64; ++depth) {
    if (pid == own) return true;
    const auto stat = parse_proc_stat(read_all(process(pid) + "/stat", 4096));
    if (!stat || stat->parent == pid) return false;
    pid = stat->parent;
  }
  return false;
}

// Which thread spends the most time in the kernel, against the look before.
void ClientScanner::Impl::measure_thread(std::uint32_t pid, Known& was, double seconds, GpuClient& spends) {
  std::map<std::uint32_t, Spent> threads;
  const auto folder = process(pid) + "/task";
  for_each_number(folder, [&](std::uint32_t tid, const std::string& name) {
    const auto stat = parse_proc_stat(read_all(folder + "/" + name + "/stat", 4096));
    if (!stat) return;
    threads[tid] = {stat->user_ticks, stat->system_ticks};
    const auto before = was.threads.find(tid);
    if (before == was.threads.end() || stat->system_ticks < before->second.system) return;
    const auto percent = [&](std::uint64_t ticks) { return static_cast<double>(ticks) / ticks_per_s / seconds * 100; };
    const auto system = percent(stat->system_ticks - before->second.system);
    if (system < spends.thread_system_percent.value_or(0)) return;
    spends.thread_system_percent = system;
    spends.thread_user_percent = percent(stat->user_ticks - std::min(stat->user_ticks, before->second.user));
  });
  was.threads = std::move(threads);
}

// What the process itself spends; costs more files only where it spends much.
void ClientScanner::Impl::measure(std::uint32_t pid, const ProcStat& stat, Known& was) {
  GpuClient spends;
  const double seconds = was.at ? static_cast<double>((now - *was.at).count()) / 1e6 : 0;
  double system = 0;
  if (seconds > 0 && stat.user_ticks >= was.spent.user && stat.system_ticks >= was.spent.system) {
    system = static_cast<double>(stat.system_ticks - was.spent.system) / ticks_per_s / seconds * 100;
    spends.cpu_percent = system + static_cast<double>(stat.user_ticks - was.spent.user) / ticks_per_s / seconds * 100;
  }
  const bool uses = std::ranges::any_of(found, [&](const auto& of) { return of.second.contains(pid); });
  if (spends.cpu_percent.value_or(0) >= kBusyPercent && !was.library && was.map_looks < kMapLooks) {
    ++was.map_looks;
    was.library = maps_compute_runtime(read_all(process(pid) + "/maps", kMostMaps));
  }
  if (uses && seconds > 0 && system >= kSystemPercent) {
    measure_thread(pid, was, seconds, spends);
    const auto bytes = parse_proc_io(read_all(process(pid) + "/io", 4096));
    if (bytes && was.read_bytes && *bytes >= *was.read_bytes)
      spends.read_bytes_per_s = static_cast<double>(*bytes - *was.read_bytes) / seconds;
    was.read_bytes = bytes;
  } else {
    was.threads.clear();
    was.read_bytes.reset();
  }
  was.user_of_gpu = uses || was.library;
  if (was.user_of_gpu) finish(pid, stat, was, spends);
  was.at = now;
  was.spent = {stat.user_ticks, stat.system_ticks};
}

void ClientScanner::Impl::finish(std::uint32_t pid, const ProcStat& stat, Known& was, const GpuClient& spends) {
  // One that has the runtime and no GPU is told of the first: it belongs to none.
  const bool nowhere = std::ranges::none_of(found, [&](const auto& of) { return of.second.contains(pid); });
  if (nowhere && !gpus.empty()) found[gpus.front()][pid];
  const double ns = was.at ? static_cast<double>((now - *was.at).count()) * 1e3 : 0;
  std::map<std::string, std::uint64_t> engines;
  for (auto& [gpu, users] : found) {
    const auto it = users.find(pid);
    if (it == users.end()) continue;
    auto& client = it->second.client;
    client.pid = pid;
    client.started = stat.started;
    client.library = was.library;
    client.cpu_percent = spends.cpu_percent;
    client.thread_system_percent = spends.thread_system_percent;
    client.thread_user_percent = spends.thread_user_percent;
    client.read_bytes_per_s = spends.read_bytes_per_s;
    for (const auto& [engine, time] : it->second.engine_ns) {
      const auto key = to_string(gpu) + " " + engine;
      engines[key] = time;
      const auto before = was.engine_ns.find(key);
      if (ns <= 0 || time < (before == was.engine_ns.end() ? 0 : before->second)) continue;
      const double used = static_cast<double>(time - (before == was.engine_ns.end() ? 0 : before->second));
      client.engine_percent = std::max(client.engine_percent.value_or(0), std::min(100.0, used / ns * 100));
    }
  }
  was.engine_ns = std::move(engines);
}

void ClientScanner::Impl::visit(std::uint32_t pid, std::set<std::uint32_t>& seen) {
  seen.insert(pid);
  const bool kfd = std::ranges::any_of(found, [&](const auto& of) { return of.second.contains(pid); });
  const auto it = known.find(pid);
  if (it != known.end() && !it->second.user_of_gpu && !kfd && looks - it->second.scanned < kRescanEvery) return;
  const auto stat = parse_proc_stat(read_all(process(pid) + "/stat", 4096));
  if (!stat) return;
  const bool fresh = it == known.end() || it->second.started != stat->started;
  auto& was = known[pid];
  if (fresh) was = {};
  was.started = stat->started;
  was.scanned = fresh ? looks - pid % kRescanEvery : looks;  // those that came together are spread over the looks
  if (stat->kernel_thread) return;
  if (!list_files(pid, stat->started)) complete = false;
  measure(pid, *stat, was);
}

std::vector<GpuClients> ClientScanner::look(const std::vector<PciAddress>& gpus, SteadyTime now) {
  auto& scan = *impl_;
  ++scan.looks;
  scan.gpus = gpus;
  scan.now = now;
  scan.nodes = find_gpu_nodes(scan.root, gpus);
  scan.found.clear();
  struct stat ns{};
  scan.complete =
      geteuid() == 0 && (!scan.root.empty() || (stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == kHostPidNamespace));
  scan.read_kfd();
  std::set<std::uint32_t> seen;
  if (!for_each_number(scan.root + "/proc", [&](std::uint32_t pid, const std::string&) { scan.visit(pid, seen); }))
    scan.complete = false;
  if (seen.empty()) scan.complete = false;  // a tree that has no processes says nothing of them
  std::erase_if(scan.known, [&](const auto& entry) { return !seen.contains(entry.first); });
  std::vector<GpuClients> out;
  for (const auto& gpu : gpus) {
    GpuClients of;
    of.gpu = gpu;
    of.look.time = now;
    of.look.complete = scan.complete;
    of.look.processors = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    for (auto& [pid, usage] : scan.found[gpu]) {
      if (scan.is_own(pid)) continue;
      usage.client.pid = pid;  // of a process namespace that is not ours: KFD alone knows it
      // Compute memory is in both lists, KFD's and that of the DRM file that it was made through.
      if (usage.kfd_bytes || usage.drm_bytes)
        usage.client.vram_bytes = std::max(usage.kfd_bytes.value_or(0), usage.drm_bytes.value_or(0));
      of.look.clients.push_back(usage.client);
    }
    out.push_back(std::move(of));
  }
  return out;
}

}  // namespace gpuhealth::telemetry
