// SPDX-License-Identifier: Apache-2.0
// Tiers 2 and 3: memory patterns, compilation, peers, minutes of work.
#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include "canary/worker/bench.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::size_t kMiB = 1U << 20U;
constexpr std::size_t kWindow = 256 * kMiB;
constexpr double kBurnSeconds = 60;

struct Mismatch {
  std::uint32_t count = 0, word = 0, have = 0, want = 0;
};

void report(Bench& bench, std::string_view canary, std::uint64_t wrong, const Mismatch& first, std::uint32_t pattern,
            std::uint64_t bytes) {
  if (wrong > 0) {
    bench.wrong(std::to_string(wrong) + " words differ; the first: word " + std::to_string(first.word) + ", pattern " +
                std::to_string(pattern) + ", bits " + std::to_string(first.have ^ first.want));
  }
  bench.note("bytes", std::to_string(bytes));
  bench.line(canary, "mismatches").value = static_cast<double>(wrong);
}

// Writes and reads one pattern over a buffer.
void fill(Gpu& gpu, Gpu::Buffer buffer, std::size_t bytes, std::uint32_t kind, std::uint32_t seed) {
  gpu.launch(0, Kernel::Fill, bytes / 4 / 256, 256, {Arg::buffer(buffer), kind, seed});
  gpu.finish(0);
}

Mismatch check(Gpu& gpu, Gpu::Buffer buffer, const DeviceMemory& counter, std::size_t bytes, std::uint32_t kind,
               std::uint32_t seed) {
  Mismatch seen;
  gpu.write(counter.get(), &seen, sizeof seen);
  gpu.launch(0, Kernel::Check, bytes / 4 / 256, 256, {Arg::buffer(buffer), counter.arg(), kind, seed});
  gpu.finish(0);
  gpu.read(&seen, counter.get(), sizeof seen);
  return gpu.ok() ? seen : Mismatch{};
}

// The device's own counting is believed only when it counts a word that was made wrong on purpose.
bool counter_counts(Gpu& gpu, Gpu::Buffer buffer, const DeviceMemory& counter, std::size_t bytes) {
  fill(gpu, buffer, bytes, 0, 1);
  const std::uint32_t planted = ~reference::pattern(0, 0, 1);
  gpu.write(buffer, &planted, sizeof planted);
  return check(gpu, buffer, counter, bytes, 0, 1).count == 1;
}

}  // namespace

void run_vram_pattern(Bench& bench) {
  Gpu& gpu = bench.gpu;
  std::size_t window = gpu.facts.cpu ? 16 * kMiB : kWindow;
  while (window > kMiB && window > bench.budget()) window /= 2;
  // The window wanders with the hours: what lies before it is taken while it is allocated, and given back.
  const auto slots = std::max<std::uint64_t>(1, bench.budget() / window);
  const auto slot = static_cast<std::uint64_t>(std::time(nullptr) / 3600) % slots;
  std::vector<std::unique_ptr<DeviceMemory>> before;
  for (std::uint64_t i = 0; i < slot && i < 1024 && !gpu.facts.cpu && gpu.ok(); ++i)
    before.push_back(std::make_unique<DeviceMemory>(gpu, window));
  const DeviceMemory memory(gpu, window), counter(gpu, sizeof(Mismatch));
  before.clear();
  if (gpu.ok() && !counter_counts(gpu, memory.get(), counter, window))
    bench.wrong("the check does not see a planted error");
  std::uint64_t wrong = 0;
  Mismatch first;
  std::uint32_t kind = 0;
  for (std::uint32_t k = 0; k < kPatterns && gpu.ok(); ++k) {
    for (const std::uint32_t seed : {0x5a5a1234U, 0xa5a5edccU}) {  // every bit in both states
      fill(gpu, memory.get(), window, k, seed + k);
      const auto seen = check(gpu, memory.get(), counter, window, k, seed + k);
      if (wrong == 0 && seen.count > 0) {
        first = seen;
        kind = k;
      }
      wrong += seen.count;
    }
  }
  bench.note("window", std::to_string(slot));
  report(bench, "vram_pattern", wrong, first, kind, window);
}

void run_jit(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const auto nonce = static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count()) | 1U;
  double began = wall_us();
  gpu.build(nonce);
  const double cold = wall_us() - began;
  began = wall_us();
  gpu.build(nonce);
  const double warm = wall_us() - began;
  bench.line("jit", "cold").value = cold / 1e3;
  bench.line("jit", "warm_ratio").value = warm / std::max(1.0, cold);
}

void run_p2p(Bench& bench) {
  const auto gb_s = bench.gpu.peer_copy(64 * kMiB);
  if (!gb_s) return bench.unsupported("p2p", "there is no second GPU, or this backend does not copy between them");
  bench.line("p2p", "bandwidth").value = gb_s;
}

namespace {

// Everything that can be had, but for `spared`, filled first and checked after.
void whole_memory(Bench& bench, std::string_view canary, std::uint64_t wanted) {
  Gpu& gpu = bench.gpu;
  std::vector<std::unique_ptr<DeviceMemory>> chunks;
  while (chunks.size() * kWindow < wanted) {
    auto chunk = std::make_unique<DeviceMemory>(gpu, kWindow);
    if (!gpu.ok()) {
      gpu.clear_error();
      break;
    }
    fill(gpu, chunk->get(), kWindow, 0, static_cast<std::uint32_t>(chunks.size()));
    if (!gpu.ok()) {
      gpu.clear_error();  // allocated lazily, and not there
      break;
    }
    chunks.push_back(std::move(chunk));
  }
  if (chunks.empty()) return bench.unsupported(canary, "not even 256 MiB are free");
  const DeviceMemory counter(gpu, sizeof(Mismatch));
  std::uint64_t wrong = 0;
  Mismatch first;
  for (std::size_t i = 0; i < chunks.size() && gpu.ok(); ++i) {
    const auto seen = check(gpu, chunks[i]->get(), counter, kWindow, 0, static_cast<std::uint32_t>(i));
    if (wrong == 0) first = seen;
    wrong += seen.count;
  }
  report(bench, canary, wrong, first, 0, chunks.size() * kWindow);
}

}  // namespace

void run_vram_full(Bench& bench) {
  constexpr std::uint64_t kSpared = 1ULL << 30U;
  if (bench.gpu.facts.cpu) return bench.unsupported("vram_full", "a CPU has no video memory");
  const auto free = 2 * bench.budget();
  whole_memory(bench, "vram_full", free > 2 * kSpared ? free - kSpared : free / 2);
}

void run_oversubscribe(Bench& bench) {
  if (bench.gpu.facts.cpu) return bench.unsupported("oversubscribe", "a CPU has no video memory");
  whole_memory(bench, "oversubscribe", bench.gpu.facts.memory / 10 * 11);
}

void run_burn(Bench& bench) {
  Gpu& gpu = bench.gpu;
  const std::size_t lanes = std::size_t{gpu.facts.units} * (gpu.facts.cpu ? 256 : 2048);
  constexpr std::uint32_t kRounds = 60000;
  const DeviceMemory out(gpu, lanes * 4);
  const auto want = reference::fma(kRounds);
  std::vector<float> have(lanes);
  std::uint64_t wrong = 0;
  int turns = 0;
  for (const double began = wall_us(); gpu.ok() && wall_us() - began < kBurnSeconds * 1e6; ++turns) {
    for (int i = 0; i < 20; ++i) gpu.launch(0, Kernel::Fma, lanes / 256, 256, {out.arg(), kRounds});
    gpu.finish(0);
    gpu.read(have.data(), out.get(), lanes * 4);
    for (std::size_t i = 0; gpu.ok() && i < lanes; ++i)
      wrong += std::bit_cast<std::uint32_t>(have[i]) != std::bit_cast<std::uint32_t>(want[i % want.size()]) ? 1 : 0;
  }
  if (wrong > 0) bench.wrong(std::to_string(wrong) + " results differ over a minute of work");
  bench.note("turns", std::to_string(turns));
  bench.line("burn", "mismatches").value = static_cast<double>(wrong);
}

}  // namespace gpuhealth::canary
