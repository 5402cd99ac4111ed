// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/bench.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "canary/worker/host_memory.hpp"

namespace gpuhealth::canary {
namespace {

double milliseconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
}

}  // namespace

CpuTime cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {milliseconds(usage.ru_utime), milliseconds(usage.ru_stime)};
}

void Samples::reject_below(double least_us) {
  const auto before = values_.size();
  std::erase_if(values_, [&](double us) { return std::isnan(us) || us < least_us || us <= 0; });
  rejected_ += static_cast<int>(before - values_.size());
}

double Samples::quantile(double q) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const double at = q * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(at))];
}

Bench::~Bench() {
  for (void* memory : pinned_) gpu.unpin(memory);
}

void Bench::prepare() {
  for (auto& memory : pinned_) {
    memory = gpu.pin(kLarge);
    if (memory == nullptr) return;
    auto* words = static_cast<std::uint32_t*>(memory);
    for (std::uint32_t i = 0; i < kLarge / 4; ++i) words[i] = i ^ kSeed;
  }
  if (auto made = make_file(kFileBytes, kSeed)) file_ = std::move(*made);
}

bool Bench::holds_pattern(Gpu::Buffer buffer, std::size_t bytes, std::uint32_t seed) {
  constexpr std::size_t kGroup = 256;
  std::array<std::uint32_t, 4> seen{};
  const DeviceMemory counter(gpu, sizeof seen);
  // First what must not match: a device that does not count would find everything right.
  for (const auto& [what, size, wanted] :
       {std::tuple<std::uint32_t, std::size_t, std::uint32_t>{~seed, kGroup * 4, kGroup}, {seed, bytes, 0}}) {
    seen = {};
    gpu.write(counter.get(), seen.data(), sizeof seen);
    gpu.launch(0, Kernel::Check, size / 4 / kGroup, kGroup, {Arg::buffer(buffer), counter.arg(), 0U, what});
    gpu.finish(0);
    gpu.read(seen.data(), counter.get(), sizeof seen);
    if (gpu.ok() && seen[0] != wanted) return false;
  }
  return true;
}

void Bench::warm() {
  DeviceMemory out(gpu, 65536 * sizeof(float));
  const double began = wall_us();
  for (int i = 0; gpu.ok() && (i < 3 || wall_us() - began < 20e3); ++i) {
    gpu.launch(0, Kernel::Fma, gpu.facts.cpu ? 4 : 256, 256, {out.arg(), 4096U});
    gpu.finish(0);
  }
}

Measurement& Bench::line(std::string_view canary, std::string_view metric) {
  auto& m = lines_.emplace_back();
  m.canary = canary;
  m.metric = metric;
  if (const auto* info = find_canary(canary, metric)) {
    m.unit = info->unit;
    m.better = info->better;
    m.tier = info->tier;
  }
  return m;
}

void Bench::time_line(std::string_view canary, std::string_view metric, const Samples& samples, double per_us) {
  auto& m = line(canary, metric);
  m.samples = static_cast<int>(samples.size());
  if (samples.empty()) return;
  m.p25 = samples.quantile(0.25) * per_us;
  m.worst = samples.worst() * per_us;
  m.value = m.p25;
}

void Bench::rate_line(std::string_view canary, std::string_view metric, const Samples& samples, double work_per_us) {
  auto& m = line(canary, metric);
  m.samples = static_cast<int>(samples.size());
  if (samples.rejected() > 0) m.notes["rejected"] = std::to_string(samples.rejected());
  if (samples.empty()) return;
  m.p25 = work_per_us / samples.quantile(0.25);
  m.worst = work_per_us / samples.worst();
  m.value = m.p25;
}

void Bench::wrong(std::string_view reason) {
  if (wrong_.empty()) wrong_ = reason;
}

void Bench::unsupported(std::string_view canary, std::string_view reason) {
  for (const auto& row : metrics_of(canary)) {
    auto& m = line(canary, row.metric);
    m.status = Status::Unsupported;
    m.reason = reason;
  }
}

void Bench::begin() {
  lines_.clear();
  notes_.clear();
  wrong_.clear();
  gpu_us_ = 0;
  gpu.clear_error();
  before_ = cpu_time();
}

void Bench::finish(std::string_view canary) {
  gpu.forget_tickets();
  const auto after = cpu_time();
  if (!gpu.ok() && lines_.empty()) line(canary, metrics_of(canary).empty() ? "" : metrics_of(canary).front().metric);
  for (auto& m : lines_) {
    if (!gpu.ok()) {
      m.status = Status::Failed;
      m.reason = gpu.error();
      m.value.reset();
    } else if (!wrong_.empty()) {
      m.status = Status::Wrong;
      m.reason = wrong_;
    } else if (m.status == Status::Ok && !m.value) {
      m.status = Status::Failed;
      m.reason = "no sample can be believed: the device's clock does not work";
    }
    m.user_ms = after.user_ms - before_.user_ms;
    m.system_ms = after.system_ms - before_.system_ms;
    if (gpu_us_ > 0) m.gpu_ms = gpu_us_ / 1e3;
    m.notes.insert(notes_.begin(), notes_.end());
    send_(m);
  }
  gpu.clear_error();
}

std::uint64_t Bench::budget() {
  const std::uint64_t free = gpu.free_memory();
  // Where the runtime does not say what is free: a quarter of all.
  return free > 0 ? free / 2 : gpu.facts.memory / 4;
}

}  // namespace gpuhealth::canary
