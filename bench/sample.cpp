// SPDX-License-Identifier: Apache-2.0
// One way of sampling a tree, repeated as the daemon does it (every eighth sample is a slow one, every eighth of those
// also reads what hardly ever changes): counted from outside
// (strace -c, bench/run) and timed here by CPU, since ratios are taken within one run.
// usage: bench_sample WAY ROOT ROUNDS, WAY = pread | reader | rsmi
//   pread   the bare reads of the files that those samples read, on kept descriptors
//   reader  what gpuhealth-reader does for a request, with the encoding, the pipe, and the daemon's decoding
//   rsmi    librocm_smi64 asked for the same values (needs ROOT to be / in a mount namespace)
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "telemetry/asic.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/frame.hpp"
#include "telemetry/metrics_readings.hpp"
#include "telemetry/pcie_link.hpp"
#include "telemetry/reader.hpp"
#include "telemetry/source_table.hpp"
#include "telemetry/sysfs.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::telemetry;

constexpr int kSlowEvery = 8;   // sampling.slow-every
constexpr int kRareEvery = 64;  // and what hardly ever changes, see sources.def

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Outcome {
  std::size_t devices = 0;
  std::size_t values = 0;  // read in all rounds, so that no way can leave some out
  double cpu = 0;
};

std::vector<DeviceInfo> devices_of(const std::string& root) {
  auto found = discover(root, NameTable::load());
  if (!found) {
    std::fprintf(stderr, "%s\n", found.error().text.c_str());
    std::exit(1);
  }
  return found->devices;
}

// What gpu_metrics says of a card of format 1, or what an idle link does not: a fast sample does without these.
bool spared(const SourceRow& row, bool busy) {
  const auto id = row.ids[0];
  if (id == ReadingId::PcieSpeed || id == ReadingId::PcieWidth) return !busy;
  return id == ReadingId::FanPercent || metrics_equivalent(id, 1, AsicFamily::Navi3x) != nullptr;
}

struct Files {
  std::vector<Fd> fast;  // read by every sample
  std::vector<Fd> slow;  // by a slow one as well
  std::vector<Fd> rare;  // by every eighth slow one as well
};

// What the samples of this device read: runtime_status and gpu_metrics, the rows of the allow-list that are there, and
// the two words of slow samples.
void add_files(const std::string& root, const DeviceInfo& device, Files& files) {
  const auto dir = device_dir(root, device.pci);
  const auto hwmon = hwmon_dir(dir);
  const auto chain = find_pcie_chain(dir);
  const auto add = [](std::vector<Fd>& to, const std::string& path) {
    if (auto fd = open_attribute(path)) to.push_back(std::move(*fd));
  };
  add(files.fast, dir + "/power/runtime_status");
  add(files.fast, dir + "/gpu_metrics");
  add(files.slow, dir + "/power_dpm_force_performance_level");
  add(files.slow, dir + "/pp_power_profile_mode");
  const bool busy = std::stoi("0" + read_text_or_empty(dir + "/gpu_busy_percent")) >= 20;
  const bool still = read_text_or_empty(hwmon + "/fan1_input") == "0";  // a fan that stands still is asked itself
  for (const auto& row : source_table()) {
    const auto located = locate(row, dir, hwmon, chain.card_end);
    if (!located || row.ids[0] == ReadingId::PcieReplays) continue;  // a constant 0 on this generation, not read
    const bool fast =
        row.tier == SourceTier::Fast && (!spared(row, busy) || (still && row.ids[0] == ReadingId::FanRpm));
    add(fast ? files.fast : row.tier == SourceTier::Rare ? files.rare : files.slow, located->path);
    if (row.parse != SourceParse::Aer) continue;
    for (std::size_t i = 1; i < chain.aer_sources.size(); ++i)
      add(files.slow, chain.aer_sources[i] + "/" + std::string(row.file));
  }
}

Outcome by_pread(const std::string& root, int rounds) {
  Files files;
  const auto devices = devices_of(root);
  for (const auto& d : devices) add_files(root, d, files);
  std::array<char, 4096> buffer;
  Outcome out;
  out.devices = devices.size();
  const auto read_all = [&](const std::vector<Fd>& list) {
    for (const auto& fd : list) out.values += pread(fd.get(), buffer.data(), buffer.size(), 0) > 0 ? 1 : 0;
  };
  const double begin = cpu_seconds();
  for (int i = 0; i < rounds; ++i) {
    read_all(files.fast);
    if (i % kSlowEvery == 0) read_all(files.slow);
    if (i % kRareEvery == 0) read_all(files.rare);
  }
  out.cpu = cpu_seconds() - begin;
  return out;
}

// Request and answer through real pipes in one process: what reader and daemon spend together.
Outcome by_reader(const std::string& root, int rounds) {
  const SystemClock clock;
  Progress progress;
  Reader reader(root, clock, &progress);
  Request request;
  request.kind = RequestKind::Sample;
  for (const auto& d : devices_of(root)) request.devices.push_back(pack(d.pci));
  std::array<int, 2> to_reader{};
  std::array<int, 2> to_daemon{};
  if (pipe(to_reader.data()) != 0 || pipe(to_daemon.data()) != 0) std::exit(1);
  fcntl(to_daemon[1], F_SETPIPE_SZ, 1 << 18);
  FrameParser parser;
  std::vector<std::uint8_t> bytes, answer, incoming;
  std::array<std::uint8_t, 65536> buffer;
  Outcome out;
  out.devices = request.devices.size();
  const auto round = [&](bool slow) {
    request.slow = slow;
    bytes.clear();
    append_request(bytes, request);
    if (write(to_reader[1], bytes.data(), bytes.size()) < 0) std::exit(1);
    const auto asked = read(to_reader[0], buffer.data(), buffer.size());
    incoming.assign(buffer.begin(), buffer.begin() + asked);
    const auto got = take_request(incoming);
    answer.clear();
    reader.answer(**got, answer);
    if (write(to_daemon[1], answer.data(), answer.size()) < 0) std::exit(1);
    for (bool done = false; !done;) {
      const auto n = read(to_daemon[0], buffer.data(), buffer.size());
      parser.feed({buffer.data(), static_cast<std::size_t>(n)});
      for (auto frame = parser.next(); frame && *frame; frame = parser.next()) {
        if (const auto* sample = std::get_if<SampleFrame>(&**frame)) out.values += sample->sample.readings.size();
        done = std::holds_alternative<DoneFrame>(**frame);
      }
    }
  };
  round(true);  // opens the files
  out.values = 0;
  const double begin = cpu_seconds();
  for (int i = 0; i < rounds; ++i) round(i % kSlowEvery == 0);
  out.cpu = cpu_seconds() - begin;
  return out;
}

// The same values from the library; scalar calls only, whose ABI is the same in all its versions (amdgpu
// reference 7.4).
struct Rsmi {
  template <class F>
  F* get(const char* name) const {
    auto* symbol = dlsym(handle, name);
    if (symbol == nullptr) {
      std::fprintf(stderr, "librocm_smi64 has no %s\n", name);
      std::exit(1);
    }
    return reinterpret_cast<F*>(symbol);
  }
  void* handle = dlopen("librocm_smi64.so.1", RTLD_NOW);
};

Outcome by_rsmi(int rounds) {
  const Rsmi lib;
  if (lib.handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  const auto init = lib.get<int(std::uint64_t)>("rsmi_init");
  const auto count = lib.get<int(std::uint32_t*)>("rsmi_num_monitor_devices");
  const auto temperature = lib.get<int(std::uint32_t, std::uint32_t, int, std::int64_t*)>("rsmi_dev_temp_metric_get");
  const auto power = lib.get<int(std::uint32_t, std::uint32_t, std::uint64_t*)>("rsmi_dev_power_ave_get");
  const auto fan_rpm = lib.get<int(std::uint32_t, std::uint32_t, std::int64_t*)>("rsmi_dev_fan_rpms_get");
  const auto fan_speed = lib.get<int(std::uint32_t, std::uint32_t, std::int64_t*)>("rsmi_dev_fan_speed_get");
  const auto busy = lib.get<int(std::uint32_t, std::uint32_t*)>("rsmi_dev_busy_percent_get");
  const auto memory_busy = lib.get<int(std::uint32_t, std::uint32_t*)>("rsmi_dev_memory_busy_percent_get");
  const auto memory_used = lib.get<int(std::uint32_t, int, std::uint64_t*)>("rsmi_dev_memory_usage_get");
  const auto voltage = lib.get<int(std::uint32_t, int, int, std::int64_t*)>("rsmi_dev_volt_metric_get");
  const auto clocks = lib.get<int(std::uint32_t, int, void*)>("rsmi_dev_gpu_clk_freq_get");
  const auto link = lib.get<int(std::uint32_t, void*)>("rsmi_dev_pci_bandwidth_get");
  const auto cap = lib.get<int(std::uint32_t, std::uint32_t, std::uint64_t*)>("rsmi_dev_power_cap_get");
  const auto cap_range =
      lib.get<int(std::uint32_t, std::uint32_t, std::uint64_t*, std::uint64_t*)>("rsmi_dev_power_cap_range_get");
  const auto fan_max = lib.get<int(std::uint32_t, std::uint32_t, std::uint64_t*)>("rsmi_dev_fan_speed_max_get");
  const auto memory_total = lib.get<int(std::uint32_t, int, std::uint64_t*)>("rsmi_dev_memory_total_get");
  const auto level = lib.get<int(std::uint32_t, int*)>("rsmi_dev_perf_level_get");
  const auto metrics = lib.get<int(std::uint32_t, void*)>("rsmi_dev_gpu_metrics_info_get");
  std::uint32_t n = 0;
  if (init(0) != 0 || count(&n) != 0) {
    std::fprintf(stderr, "rsmi_init failed\n");
    std::exit(1);
  }
  Outcome out;
  out.devices = n;
  alignas(16) static std::array<char, 16384> structure;  // larger than any version's structures
  const double begin = cpu_seconds();
  for (int i = 0; i < rounds; ++i) {
    for (std::uint32_t d = 0; d < n; ++d) {
      std::int64_t s = 0;
      std::uint64_t u = 0;
      std::uint32_t w = 0;
      for (const std::uint32_t sensor : {0u, 1u, 2u}) out.values += temperature(d, sensor, 0, &s) == 0;
      out.values += power(d, 0, &u) == 0;
      out.values += fan_rpm(d, 0, &s) == 0;
      out.values += fan_speed(d, 0, &s) == 0;
      out.values += busy(d, &w) == 0;
      out.values += memory_busy(d, &w) == 0;
      for (const int kind : {0, 2}) out.values += memory_used(d, kind, &u) == 0;  // VRAM, GTT
      out.values += voltage(d, 0, 0, &s) == 0;
      for (const int clock : {0, 4}) out.values += clocks(d, clock, structure.data()) == 0;  // shader, memory
      out.values += link(d, structure.data()) == 0;
      out.values += metrics(d, structure.data()) == 0;
      if (i % kSlowEvery != 0) continue;
      std::uint64_t v = 0;
      int l = 0;
      out.values += cap(d, 0, &u) == 0;
      out.values += memory_used(d, 1, &u) == 0;
      for (const int clock : {1, 3}) out.values += clocks(d, clock, structure.data()) == 0;  // fabric, SoC
      out.values += level(d, &l) == 0;
      if (i % kRareEvery != 0) continue;
      for (const int metric : {5, 10}) {  // critical, emergency
        for (const std::uint32_t sensor : {0u, 1u, 2u}) out.values += temperature(d, sensor, metric, &s) == 0;
      }
      out.values += cap_range(d, 0, &u, &v) == 0;
      out.values += fan_max(d, 0, &u) == 0;
      for (const int kind : {0, 1, 2}) out.values += memory_total(d, kind, &u) == 0;
    }
  }
  out.cpu = cpu_seconds() - begin;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_sample pread|reader|rsmi ROOT ROUNDS\n");
    return 2;
  }
  const std::string way = argv[1];
  const std::string root = std::string(argv[2]) == "/" ? "" : argv[2];
  const int rounds = std::atoi(argv[3]);
  const auto out = way == "pread" ? by_pread(root, rounds) : way == "rsmi" ? by_rsmi(rounds) : by_reader(root, rounds);
  // devices, values a device and round, CPU microseconds a device and round
  const double samples = static_cast<double>(out.devices) * rounds;
  std::printf("%zu %.2f %.3f\n", out.devices, static_cast<double>(out.values) / samples, out.cpu * 1e6 / samples);
  return 0;
}
