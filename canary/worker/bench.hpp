// SPDX-License-Identifier: Apache-2.0
// What every canary needs: a GPU, samples, a place to report. Canaries are functions in one table (suite.cpp).
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "canary/measurement.hpp"
#include "canary/worker/gpu.hpp"
#include "core/fd.hpp"

namespace gpuhealth::canary {

inline double wall_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct CpuTime {
  double user_ms = 0, system_ms = 0;
};
CpuTime cpu_time();  // of this process, all threads

class Samples {
 public:
  void add(double us) { values_.push_back(us); }
  // Drops what is faster than `least_us`: no hardware can, so the clock lied.
  void reject_below(double least_us);
  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] double quantile(double q) const;  // of none: 0
  [[nodiscard]] double worst() const { return quantile(1); }
  [[nodiscard]] int rejected() const { return rejected_; }

 private:
  std::vector<double> values_;
  int rejected_ = 0;
};

class Bench {
 public:
  using Send = std::function<void(const Measurement&)>;
  Bench(Gpu& a_gpu, Send send) : gpu(a_gpu), send_(std::move(send)) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench();

  Gpu& gpu;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives as long as the process

  // What several canaries need is made once, at the start: two pinned buffers of kLarge bytes, the first filled with
  // pattern 0 of kSeed; a file in memory with the same pattern.
  static constexpr std::size_t kLarge = 32U << 20U;
  static constexpr std::size_t kFileBytes = 4U << 20U;
  static constexpr std::uint32_t kSeed = 77;
  void prepare();
  [[nodiscard]] void* pinned(int which) const { return pinned_.at(static_cast<std::size_t>(which)); }
  [[nodiscard]] int file() const { return file_.get(); }
  // Whether the first `bytes` of a device buffer hold pattern 0 of `seed`, counted on the device.
  bool holds_pattern(Gpu::Buffer buffer, std::size_t bytes, std::uint32_t seed);

  // Warm clocks: at least 3 launches and 20 ms of work.
  void warm();

  // Adds to the lines of the canary that runs; send() happens at its end, with what was common to it.
  Measurement& line(std::string_view canary, std::string_view metric);
  void time_line(std::string_view canary, std::string_view metric, const Samples& samples, double per_us = 1);
  void rate_line(std::string_view canary, std::string_view metric, const Samples& samples, double work_per_us);
  void wrong(std::string_view reason);  // all lines of this canary
  void unsupported(std::string_view canary, std::string_view reason);
  void note(const std::string& name, const std::string& value) { notes_[name] = value; }
  void add_gpu_us(double us) { gpu_us_ += us; }

  void begin();
  void finish(std::string_view canary);  // reports; a GPU error turns all lines into failed ones

  // Bytes that may be taken: half of what is free.
  [[nodiscard]] std::uint64_t budget();

 private:
  Send send_;
  std::array<void*, 2> pinned_{};
  Fd file_;
  std::vector<Measurement> lines_;
  std::map<std::string, std::string> notes_;
  double gpu_us_ = 0;
  CpuTime before_;
  std::string wrong_;
};

struct SuiteRow {
  std::string_view canary;
  void (*run)(Bench& bench);
};
std::span<const SuiteRow> all_gpu_canaries();

// One a canary.
void run_launch_rtt(Bench& bench);
void run_chain(Bench& bench);
void run_overlap(Bench& bench);
void run_queue_create(Bench& bench);
void run_alloc(Bench& bench);
void run_triad(Bench& bench);
void run_gather(Bench& bench);
void run_fma32(Bench& bench);
void run_mma16(Bench& bench);
void run_checksum(Bench& bench);
void run_h2d_pin(Bench& bench);
void run_d2h_pin(Bench& bench);
void run_bidi(Bench& bench);
void run_copy_small(Bench& bench);
void run_h2d_anon(Bench& bench);
void run_h2d_file_rw(Bench& bench);
void run_h2d_file_ro(Bench& bench);
void run_copy_while_compute(Bench& bench);
void run_vram_pattern(Bench& bench);
void run_jit(Bench& bench);
void run_p2p(Bench& bench);
void run_vram_full(Bench& bench);
void run_oversubscribe(Bench& bench);
void run_burn(Bench& bench);

// Frees at the end of a canary.
class DeviceMemory {
 public:
  DeviceMemory(Gpu& gpu, std::size_t bytes) : gpu_(gpu), buffer_(gpu.allocate(bytes)) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { gpu_.release(buffer_); }
  [[nodiscard]] Gpu::Buffer get() const { return buffer_; }
  [[nodiscard]] Arg arg() const { return Arg::buffer(buffer_); }

 private:
  Gpu& gpu_;
  Gpu::Buffer buffer_;
};

}  // namespace gpuhealth::canary
