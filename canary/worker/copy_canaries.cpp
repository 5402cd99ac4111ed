// SPDX-License-Identifier: Apache-2.0
// Copies between host and device: pinned, ordinary, and from mapped files.
#include <algorithm>
#include <string>

#include "canary/worker/bench.hpp"
#include "canary/worker/host_memory.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kLarge = Bench::kLarge;
constexpr std::size_t kFile = Bench::kFileBytes;  // two slots; above every pinning threshold of the runtimes
static_assert(kFile == 2 * kSlotBytes);
constexpr int kFileSamples = 3;
constexpr const char* kNotSent = "what was copied to the device is not what was sent";

Samples timed_copies(Bench& bench, int count, bool to_device, const DeviceMemory& device, std::size_t bytes) {
  Gpu& gpu = bench.gpu;
  Samples samples;
  for (int i = 0; i < count + 2 && gpu.ok(); ++i) {
    Gpu::Ticket ticket = 0;
    if (to_device)
      gpu.write_async(0, device.get(), bench.pinned(0), bytes, &ticket);
    else
      gpu.read_async(0, bench.pinned(1), device.get(), bytes, &ticket);
    gpu.finish(0);
    const double us = gpu.interval(ticket).us();
    bench.add_gpu_us(us);
    if (i >= 2) samples.add(us);
  }
  return samples;
}

// time(bytes) = overhead + bytes / bandwidth, from two sizes: a slot that has lost lanes changes the second term alone.
void two_terms(Bench& bench, const Samples& large, const Samples& small) {
  const double slope = (large.quantile(0.25) - small.quantile(0.25)) / static_cast<double>(kLarge - kMiB);
  if (slope <= 0) return;
  bench.note("link_gb_s", std::to_string(1 / slope / 1e3));
  bench.note("overhead_us", std::to_string(std::max(0.0, small.quantile(0.25) - slope * kMiB)));
}

}  // namespace

void run_h2d_pin(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const DeviceMemory device(gpu, kLarge);
  const auto samples = timed_copies(bench, gpu.facts.cpu ? 4 : 6, true, device, kLarge);
  if (!bench.holds_pattern(device.get(), kLarge, Bench::kSeed)) bench.wrong(kNotSent);
  const auto small = timed_copies(bench, 6, true, device, kMiB);
  bench.rate_line("h2d_pin", "bandwidth", samples, kLarge / 1e3);
  two_terms(bench, samples, small);
}

// Directly after copies to the device: some runtimes then choose another engine.
void run_d2h_pin(Bench& bench) {
  Gpu& gpu = bench.gpu;
  constexpr std::uint32_t kSeed = 99;
  const DeviceMemory device(gpu, kLarge), other(gpu, kLarge);
  gpu.launch(0, Kernel::Fill, kLarge / 4 / 256, 256, {device.arg(), 0U, kSeed});
  gpu.finish(0);
  for (int i = 0; i < 2; ++i) gpu.write_async(0, other.get(), bench.pinned(0), kLarge);
  const auto samples = timed_copies(bench, gpu.facts.cpu ? 4 : 6, false, device, kLarge);
  const auto* words = static_cast<const std::uint32_t*>(bench.pinned(1));
  std::uint32_t different = 0;
  for (std::uint32_t i = 0; gpu.ok() && i < kLarge / 4; ++i) different |= words[i] ^ i ^ kSeed;
  if (different != 0) bench.wrong("what came from the device is not what it held");
  const auto small = timed_copies(bench, 6, false, device, kMiB);
  bench.rate_line("d2h_pin", "bandwidth", samples, kLarge / 1e3);
  two_terms(bench, samples, small);
}

void run_bidi(Bench& bench) {
  Gpu& gpu = bench.gpu;
  if (gpu.facts.host_clock) return bench.unsupported("bidi", "the device's time stamps cannot be believed");
  const DeviceMemory to(gpu, kLarge), from(gpu, kLarge);
  gpu.launch(0, Kernel::Fill, kLarge / 4 / 256, 256, {from.arg(), 0U, 5U});
  gpu.finish(0);
  Samples samples;
  for (int i = 0; i < 7 && gpu.ok(); ++i) {
    Gpu::Ticket there = 0;
    Gpu::Ticket back = 0;
    gpu.write_async(1, to.get(), bench.pinned(0), kLarge, &there);
    gpu.read_async(2, bench.pinned(1), from.get(), kLarge, &back);
    gpu.flush(1);
    gpu.flush(2);
    gpu.finish(1);
    gpu.finish(2);
    const auto a = gpu.interval(there);
    const auto b = gpu.interval(back);
    const double us = std::max(a.end_us, b.end_us) - std::min(a.start_us, b.start_us);
    bench.add_gpu_us(us);
    if (i >= 2) samples.add(us);
  }
  bench.rate_line("bidi", "bandwidth", samples, 2 * kLarge / 1e3);
}

void run_copy_small(Bench& bench) {
  Gpu& gpu = bench.gpu;
  constexpr std::size_t kSmall = 4096;
  const DeviceMemory device(gpu, kSmall);
  Samples samples;
  for (int i = 0; i < 330 && gpu.ok(); ++i) {
    const double began = wall_us();
    gpu.write_async(0, device.get(), bench.pinned(0), kSmall);
    gpu.finish(0);
    if (i >= 30) samples.add(wall_us() - began);
  }
  bench.time_line("copy_small", "latency", samples);
}

void run_h2d_anon(Bench& bench) {
  Gpu& gpu = bench.gpu;
  constexpr std::size_t kBytes = 8 * kMiB;
  const DeviceMemory device(gpu, kBytes);
  std::vector<std::uint32_t> host(kBytes / 4);
  for (std::uint32_t i = 0; i < host.size(); ++i) host[i] = i ^ 3U;
  Samples samples;
  for (int i = 0; i < 8 && gpu.ok(); ++i) {
    const double began = wall_us();
    gpu.write(device.get(), host.data(), kBytes);
    gpu.finish(0);
    if (i >= 2) samples.add(wall_us() - began);
  }
  if (!bench.holds_pattern(device.get(), kBytes, 3)) bench.wrong(kNotSent);
  bench.rate_line("h2d_anon", "bandwidth", samples, kBytes / 1e3);
}

namespace {

struct FileCopy {
  double ms = 0, system_ms = 0;
  std::string problem;
};

FileCopy copy_mapping(Bench& bench, HostMapping::Kind kind, int file, const DeviceMemory& device) {
  Gpu& gpu = bench.gpu;
  FileCopy out;
  const auto mapping = HostMapping::make(kind, file, kFile);
  if (!mapping) {
    out.problem = mapping.error().text;
    return out;
  }
  out.problem = mapping->state_problem();
  const auto cpu = cpu_time();
  const double began = wall_us();
  gpu.write(device.get(), mapping->data(), kFile);
  gpu.finish(0);
  out.ms = (wall_us() - began) / 1e3;
  out.system_ms = cpu_time().system_ms - cpu.system_ms;
  if (!bench.holds_pattern(device.get(), kFile, Bench::kSeed))
    bench.wrong("what was copied from a mapped file is not what it holds");
  return out;
}

}  // namespace

void run_h2d_file_rw(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const DeviceMemory device(gpu, kFile);
  copy_mapping(bench, HostMapping::Kind::FileReadOnly, bench.file(), device);  // warms what is common
  auto& m = bench.line("h2d_file_rw", "worst");
  double worst = 0;
  for (int i = 0; i < kFileSamples && gpu.ok(); ++i) {
    const auto control = copy_mapping(bench, HostMapping::Kind::FileReadOnly, bench.file(), device);
    const auto probe = copy_mapping(bench, HostMapping::Kind::FileWritable, bench.file(), device);
    if (!probe.problem.empty()) {
      m.status = Status::Unsupported;
      m.reason = "inconclusive: " + probe.problem;
      return;
    }
    m.mappings.push_back({probe.ms, control.ms, probe.system_ms, static_cast<int>(kFile / kSlotBytes)});
    worst = std::max(worst, probe.ms);
  }
  m.samples = kFileSamples;
  m.value = worst;
}

void run_h2d_file_ro(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const DeviceMemory device(gpu, kFile);
  Samples samples;
  for (int i = 0; i < 7 && gpu.ok(); ++i) {
    const auto copy = copy_mapping(bench, HostMapping::Kind::FileReadOnly, bench.file(), device);
    if (i > 1) samples.add(copy.ms * 1e3);
  }
  auto& m = bench.line("h2d_file_ro", "median");
  m.samples = static_cast<int>(samples.size());
  m.value = samples.quantile(0.5) / 1e3;
  m.worst = samples.worst() / 1e3;
}

void run_copy_while_compute(Bench& bench) {
  Gpu& gpu = bench.gpu;
  if (gpu.facts.host_clock)
    return bench.unsupported("copy_while_compute", "the device's time stamps cannot be believed");
  const DeviceMemory device(gpu, kLarge), out(gpu, 256);
  Gpu::Ticket copy = 0;
  Gpu::Ticket spin = 0;
  double copy_us = 0;
  double spin_us = 0;
  std::uint32_t turns = 8;
  for (int i = 0; i < 3 && gpu.ok(); ++i) {
    gpu.write_async(1, device.get(), bench.pinned(0), kLarge, &copy);
    gpu.finish(1);
    copy_us = gpu.interval(copy).us();
  }
  // A kernel about as long as the copy.
  for (int i = 0; i < 6 && gpu.ok() && spin_us < 0.8 * copy_us; ++i) {
    gpu.launch(0, Kernel::Spin, 1, 64, {out.arg(), turns}, &spin);
    gpu.finish(0);
    spin_us = gpu.interval(spin).us();
    if (spin_us < 0.8 * copy_us)
      turns = static_cast<std::uint32_t>(std::clamp(turns * copy_us / std::max(1.0, spin_us), turns + 1.0, 60000.0));
  }
  Samples stretch;
  for (int i = 0; i < 4 && gpu.ok(); ++i) {
    gpu.launch(0, Kernel::Spin, 1, 64, {out.arg(), turns}, &spin);
    gpu.flush(0);
    gpu.write_async(1, device.get(), bench.pinned(0), kLarge, &copy);
    gpu.flush(1);
    gpu.finish(0);
    gpu.finish(1);
    const auto a = gpu.interval(spin);
    const auto b = gpu.interval(copy);
    const double together = std::max(a.end_us, b.end_us) - std::min(a.start_us, b.start_us);
    bench.add_gpu_us(together);
    stretch.add(together / std::max({copy_us, spin_us, 1e-3}));
  }
  bench.time_line("copy_while_compute", "stretch", stretch);
}

}  // namespace gpuhealth::canary
