// SPDX-License-Identifier: Apache-2.0
// What the chip computes and how fast its memory is; every output is compared bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "canary/worker/bench.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kGroup = 256;
constexpr double kRoofline = 1.05;
constexpr double kFastestGbS = 30000;  // no memory of this decade

// Bytes of each of the three arrays: a power of two, at least four times the last cache.
std::size_t triad_bytes(Bench& bench) {
  const auto& facts = bench.gpu.facts;
  const std::uint64_t cache = facts.cpu ? 16 * kMiB : std::max<std::uint64_t>(facts.last_cache, 64 * kMiB);
  std::uint64_t bytes = std::clamp<std::uint64_t>(std::bit_ceil(4 * cache), 64 * kMiB, 512 * kMiB);
  while (bytes > 4 * kMiB && 3 * bytes > bench.budget()) bytes /= 2;
  return bytes;
}

void check_triad(Bench& bench, const DeviceMemory& a, std::size_t floats) {
  constexpr std::uint32_t kLanes = 65536;
  const DeviceMemory folded(bench.gpu, std::size_t{kLanes} * 4);
  const auto count = static_cast<std::uint32_t>(floats / kLanes);
  bench.gpu.launch(0, Kernel::Fold, kLanes / kGroup, kGroup, {a.arg(), folded.arg(), kLanes, count});
  std::vector<std::uint32_t> have(kLanes);
  bench.gpu.finish(0);
  bench.gpu.read(have.data(), folded.get(), have.size() * 4);
  const auto want = reference::fold(reference::triad_period(), count);
  std::size_t bad = 0;
  for (std::size_t i = 0; bench.gpu.ok() && i < have.size(); ++i) bad += have[i] != want[i % want.size()] ? 1 : 0;
  if (bad > 0) bench.wrong(std::to_string(bad) + " of 65536 sums over the result differ");
}

}  // namespace

void run_triad(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const std::size_t bytes = triad_bytes(bench);
  const std::size_t floats = bytes / 4;
  const DeviceMemory a(gpu, bytes), b(gpu, bytes), c(gpu, bytes);
  gpu.launch(0, Kernel::Init, floats / kGroup, kGroup, {b.arg(), c.arg()});
  gpu.finish(0);
  Samples samples;
  const int runs = gpu.facts.cpu ? 10 : 20;
  for (int i = 0; i < runs + 3 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch(0, Kernel::Triad, floats / 4 / kGroup, kGroup, {a.arg(), b.arg(), c.arg(), 3.0F}, &ticket);
    gpu.finish(0);
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i >= 3) samples.add(us);
  }
  const double work = 3 * static_cast<double>(bytes);
  const double most = gpu.facts.memory_gb_s > 0 ? gpu.facts.memory_gb_s * kRoofline : kFastestGbS;
  samples.reject_below(work / most / 1e3);
  bench.rate_line("triad", "bandwidth", samples, work / 1e3);
  if (gpu.facts.memory_gb_s > 0) bench.note("ideal", std::to_string(gpu.facts.memory_gb_s));
  bench.note("bytes", std::to_string(3 * bytes));
  check_triad(bench, a, floats);
}

void run_gather(Bench& bench) {
  Gpu& gpu = bench.gpu;
  std::size_t words = 64 * kMiB;  // 256 MiB
  while (words > kMiB && words * 4 > bench.budget()) words /= 2;
  const auto mask = static_cast<std::uint32_t>(words - 1);
  const std::size_t lanes = gpu.facts.cpu ? 4096 : 65536;
  constexpr std::uint32_t kSteps = 3000;
  constexpr std::uint32_t kRandomSteps = 16;
  const DeviceMemory links(gpu, words * 4), out(gpu, lanes * 4);
  gpu.launch(0, Kernel::Links, words / kGroup, kGroup, {links.arg(), mask});
  gpu.finish(0);
  Samples chase, random;
  std::uint32_t at = 1;
  for (int i = 0; i < 5 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch(0, Kernel::Chase, 1, 64, {links.arg(), out.arg(), at, kSteps}, &ticket);
    gpu.finish(0);
    const auto want = reference::chase(at, kSteps, mask);
    gpu.read(&at, out.get(), sizeof at);
    if (gpu.ok() && at != want) bench.wrong("a chain of reads ended at the wrong place");
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i > 0) chase.add(us / kSteps * 1e3);
  }
  for (int i = 0; i < 9 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch(0, Kernel::Gather, lanes / kGroup, kGroup, {links.arg(), out.arg(), kRandomSteps, mask}, &ticket);
    gpu.finish(0);
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i > 0) random.add(us * 1e3 / (static_cast<double>(lanes) * kRandomSteps));
  }
  std::vector<std::uint32_t> have(lanes);
  gpu.read(have.data(), out.get(), lanes * 4);
  std::size_t bad = 0;
  for (std::uint32_t lane = 0; gpu.ok() && lane < lanes; ++lane)
    bad += have[lane] != reference::gather(lane, kRandomSteps, mask) ? 1 : 0;
  if (bad > 0) bench.wrong(std::to_string(bad) + " of " + std::to_string(lanes) + " lanes read something else");
  bench.time_line("gather", "latency", chase);
  bench.time_line("gather", "random", random);
  bench.note("bytes", std::to_string(words * 4));
}

void run_fma32(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const std::size_t lanes = std::size_t{gpu.facts.units} * (gpu.facts.cpu ? 256 : 2048);
  constexpr std::uint32_t kRounds = 16384;
  const DeviceMemory out(gpu, lanes * 4);
  Samples samples;
  for (int i = 0; i < (gpu.facts.cpu ? 8 : 9) && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch(0, Kernel::Fma, lanes / kGroup, kGroup, {out.arg(), kRounds}, &ticket);
    gpu.finish(0);
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i >= 3) samples.add(us);
  }
  std::vector<float> have(lanes);
  gpu.read(have.data(), out.get(), lanes * 4);
  const auto want = reference::fma(kRounds);
  std::size_t bad = 0;
  for (std::size_t i = 0; gpu.ok() && i < lanes; ++i)
    bad += std::bit_cast<std::uint32_t>(have[i]) != std::bit_cast<std::uint32_t>(want[i % want.size()]) ? 1 : 0;
  if (bad > 0) bench.wrong(std::to_string(bad) + " of " + std::to_string(lanes) + " lanes computed something else");
  // Four multiply-adds a round, two operations each.
  bench.rate_line("fma32", "rate", samples, static_cast<double>(lanes) * 8 * kRounds / 1e3);
}

void run_mma16(Bench& bench) {
  Gpu& gpu = bench.gpu;
  if (!gpu.has_mma()) return bench.unsupported("mma16", "this backend has no 16-bit matrix instructions here");
  constexpr std::uint32_t kRounds = 2048;
  const std::size_t groups = std::size_t{gpu.facts.units} * 8;
  const DeviceMemory out(gpu, groups * kGroup * 4);
  Samples samples;
  for (int i = 0; i < 9 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    gpu.launch_mma(groups, out.get(), kRounds, &ticket);
    gpu.finish(0);
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i >= 3) samples.add(us);
  }
  std::vector<float> have(groups * kGroup);
  gpu.read(have.data(), out.get(), have.size() * 4);
  // Sixteen products of ones with (1, 2, 1, 2) a column: 24 an element and round, sixteen elements a lane.
  const float want = 16.0F * 24.0F * static_cast<float>(kRounds);
  const auto bad = std::ranges::count_if(have, [&](float v) { return v != want; });
  if (gpu.ok() && bad > 0) bench.wrong(std::to_string(bad) + " lanes computed something else");
  // Four 16x8x16 products a round and warp.
  const double work = static_cast<double>(groups) * 8 * 4 * 4096 * kRounds;
  bench.rate_line("mma16", "rate", samples, work / 1e6);
}

void run_checksum(Bench& bench) {
  Gpu& gpu = bench.gpu;
  constexpr std::size_t kLanes = 65536;
  constexpr std::uint32_t kRounds = 256;
  const DeviceMemory out(gpu, kLanes * 4);
  std::vector<std::uint32_t> have(kLanes), want(kLanes);
  const auto seed = static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  reference::mix(want, kRounds, seed);
  std::string repeats;
  std::size_t bad = 0;
  // On the same data once more and once more: always the same bits are software, others are hardware.
  for (int i = 0; i < 3 && gpu.ok() && (i == 0 || bad > 0); ++i) {
    gpu.launch(0, Kernel::Mix, kLanes / kGroup, kGroup, {out.arg(), kRounds, seed});
    gpu.finish(0);
    gpu.read(have.data(), out.get(), kLanes * 4);
    std::size_t now = 0;
    for (std::size_t k = 0; k < kLanes; ++k) now += have[k] != want[k] ? 1 : 0;
    repeats += (i == 0 ? "" : ", ") + std::to_string(now);
    bad = std::max(bad, now);
  }
  if (gpu.ok() && bad > 0) {
    bench.wrong("lanes that differ, in three tries on the same data: " + repeats);
    bench.note("repeats", repeats);
  }
  bench.line("checksum", "mismatches").value = static_cast<double>(bad);
}

}  // namespace gpuhealth::canary
