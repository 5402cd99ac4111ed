// SPDX-License-Identifier: Apache-2.0
// Dispatch: launches, chains, queues side by side, creating things.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "canary/worker/bench.hpp"

namespace gpuhealth::canary {
namespace {

constexpr int kBatches = 64;
constexpr int kRoundTrips = 30;  // of a batch
constexpr int kDropped = 100;
constexpr std::uint32_t kChain = 800;
constexpr int kChains = 4;
constexpr double kSpinUs = 1000;
constexpr std::uint32_t kMostTurns = 60000;

// How many turns of gh_spin take `wanted_us` in one group of 64.
std::uint32_t calibrate(Gpu& gpu, const DeviceMemory& out, double wanted_us, double& alone_us) {
  std::uint32_t turns = 4;
  for (int i = 0; i < 12 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch(0, Kernel::Spin, 1, 64, {out.arg(), turns}, &ticket);
    gpu.finish(0);
    alone_us = gpu.interval(ticket).us();
    if (alone_us >= 0.7 * wanted_us || turns == kMostTurns) break;
    const double factor = alone_us > 1 ? std::min(16.0, wanted_us / alone_us) : 16.0;
    turns = static_cast<std::uint32_t>(std::clamp(turns * factor, turns + 1.0, double{kMostTurns}));
  }
  return turns;
}

// Moves this thread over the processors that it may use, and back at the end.
class Processors {
 public:
  Processors() {
    CPU_ZERO(&all_);
    if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &all_)) usable_.push_back(cpu);
    }
  }
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;
  ~Processors() {
    if (!usable_.empty()) sched_setaffinity(0, sizeof all_, &all_);
  }
  void next(int turn) const {
    if (usable_.size() < 2) return;
    // Far apart, so that few turns see all of a large machine.
    const auto at =
        static_cast<std::size_t>(turn) * std::max<std::size_t>(1, usable_.size() / kBatches) % usable_.size();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(usable_[at], &one);
    sched_setaffinity(0, sizeof one, &one);
  }

 private:
  cpu_set_t all_{};
  std::vector<int> usable_;
};

struct Side {
  double fraction = 0;
  double stretch = 0;
};

// Time in which the kernels ran beside each other, as a share of what there could be.
Side compare(std::vector<Interval> seen, double alone_us) {
  std::ranges::sort(seen, {}, &Interval::start_us);
  double sum = 0;
  double longest = 0;
  double together = 0;
  double until = seen.front().start_us;
  for (const auto& i : seen) {
    sum += i.us();
    longest = std::max(longest, i.us());
    together += std::max(0.0, i.end_us - std::max(i.start_us, until));
    until = std::max(until, i.end_us);
  }
  Side side;
  side.fraction = sum > longest ? std::clamp((sum - together) / (sum - longest), 0.0, 1.0) : 0;
  side.stretch = alone_us > 0 ? sum / static_cast<double>(seen.size()) / alone_us : 0;
  return side;
}

}  // namespace

void run_launch_rtt(Bench& bench) {
  Gpu& gpu = bench.gpu;
  DeviceMemory memory(gpu, 4096);
  // Which processor a process happens to be on moves the number by several percent, and other programs lengthen some
  // round trips: each batch runs on another processor; of the batches' medians the lowest decile is taken, which is
  // the same from one process to the next. The tail is that of all.
  const Processors processors;
  Samples medians, all, batch;
  for (int i = 0; i < kBatches * kRoundTrips + kDropped && gpu.ok(); ++i) {
    const double began = wall_us();
    gpu.launch(0, Kernel::Nop, 1, 64, {memory.arg()});
    gpu.finish(0);
    if (i < kDropped) continue;
    all.add(wall_us() - began);
    batch.add(wall_us() - began);
    if (batch.size() < kRoundTrips) continue;
    processors.next(static_cast<int>(medians.size()));
    medians.add(batch.quantile(0.5));
    batch = Samples();
  }
  for (const auto& [metric, value] :
       {std::pair<const char*, double>{"p50", medians.quantile(0.1)}, {"p99", all.quantile(0.99)}}) {
    auto& m = bench.line("launch_rtt", metric);
    m.samples = static_cast<int>(all.size());
    m.p25 = all.quantile(0.25);
    m.worst = all.worst();
    if (!all.empty()) m.value = value;
  }
}

void run_chain(Bench& bench) {
  Gpu& gpu = bench.gpu;
  DeviceMemory memory(gpu, 4096);
  Samples samples;
  std::uint32_t expected = 12345;
  gpu.write(memory.get(), &expected, sizeof expected);
  for (int i = 0; i <= kChains && gpu.ok(); ++i) {
    const double began = wall_us();
    for (std::uint32_t k = 0; k < kChain; ++k) gpu.launch(0, Kernel::Bump, 1, 64, {memory.arg()});
    gpu.finish(0);
    if (i > 0) samples.add((wall_us() - began) / kChain);
    expected = reference::lcg(expected, kChain);
  }
  std::uint32_t have = 0;
  gpu.read(&have, memory.get(), sizeof have);
  if (gpu.ok() && have != expected) bench.wrong("a chain of dependent kernels lost a step or took one twice");
  bench.time_line("chain", "per_kernel", samples);
}

void run_overlap(Bench& bench) {
  Gpu& gpu = bench.gpu;
  if (gpu.facts.host_clock) return bench.unsupported("overlap", "the device's time stamps cannot be believed");
  if (gpu.facts.units < 2) return bench.unsupported("overlap", "one compute unit: nothing can run side by side");
  DeviceMemory first(gpu, 256), second(gpu, 256), third(gpu, 256), fourth(gpu, 256);
  const std::array<const DeviceMemory*, kQueues> out = {&first, &second, &third, &fourth};
  double alone = 0;
  const auto turns = calibrate(gpu, first, kSpinUs, alone);
  Side worst{1, 0};
  std::string seen;
  for (int queues = 2; queues <= std::min<int>(kQueues, static_cast<int>(gpu.facts.units)) && gpu.ok(); queues += 2) {
    std::vector<Gpu::Ticket> tickets(static_cast<std::size_t>(queues));
    for (int q = 0; q < queues; ++q) {
      gpu.launch(q, Kernel::Spin, 1, 64, {out.at(static_cast<std::size_t>(q))->arg(), turns},
                 &tickets.at(static_cast<std::size_t>(q)));
      gpu.flush(q);
    }
    for (int q = 0; q < queues; ++q) gpu.finish(q);
    std::vector<Interval> intervals;
    intervals.reserve(tickets.size());
    for (const auto ticket : tickets) intervals.push_back(gpu.interval(ticket));
    for (const auto& i : intervals) bench.add_gpu_us(i.us());
    if (!gpu.ok()) break;
    const auto side = compare(intervals, alone);
    seen +=
        (seen.empty() ? "" : ", ") + std::to_string(queues) + " queues " + std::to_string(side.fraction).substr(0, 4);
    if (side.fraction <= worst.fraction) worst = side;
  }
  const auto used = static_cast<std::size_t>(std::min<std::uint32_t>(gpu.facts.units, kQueues) / 2 * 2);
  const auto want_first = reference::spin(0, turns);
  const auto want_last = reference::spin(63, turns);
  for (std::size_t i = 0; i < used && gpu.ok(); ++i) {
    std::array<std::uint32_t, 64> have{};
    gpu.read(have.data(), out.at(i)->get(), sizeof have);
    if (have.front() != want_first || have.back() != want_last)
      bench.wrong("a kernel beside others computed something else");
  }
  bench.note("seen", seen);
  bench.line("overlap", "fraction").value = worst.fraction;
  bench.line("overlap", "stretch").value = worst.stretch;
}

void run_queue_create(Bench& bench) {
  Samples samples;
  for (int i = 0; i < 11 && bench.gpu.ok(); ++i) {
    const double began = wall_us();
    bench.gpu.create_queue();
    if (i > 0) samples.add(wall_us() - began);
  }
  bench.time_line("queue_create", "time", samples);
}

void run_alloc(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const std::array<std::pair<const char*, std::size_t>, 2> sizes = {{{"small", 1U << 20U}, {"large", 64U << 20U}}};
  for (const auto& [metric, bytes] : sizes) {
    Samples samples;
    for (int i = 0; i < 12 && gpu.ok(); ++i) {
      const double began = wall_us();
      {
        const DeviceMemory memory(gpu, bytes);
        const std::uint32_t touch = 1;
        gpu.write(memory.get(), &touch, sizeof touch);
      }
      if (i > 1) samples.add(wall_us() - began);
    }
    bench.time_line("alloc", metric, samples);
  }
}

}  // namespace gpuhealth::canary
