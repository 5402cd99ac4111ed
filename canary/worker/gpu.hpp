// SPDX-License-Identifier: Apache-2.0
// A GPU through one runtime, as the canaries use it. The first call that fails is remembered and all after it do
// nothing, as with a stream: a canary asks error() once, at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "canary/worker/kernels.hpp"
#include "core/error.hpp"
#include "core/pci.hpp"

namespace gpuhealth::canary {

struct Facts {
  std::string backend;  // "opencl"
  std::string device;   // PCI address, "cpu", or "opencl-0" where the runtime does not say
  std::string name;
  std::string runtime;  // version, part of the epoch
  std::string arch;     // "gfx1100", "sm_90"; empty when unknown
  bool cpu = false;
  std::uint32_t units = 1;        // compute units, multiprocessors
  std::uint64_t memory = 0;       // bytes
  std::uint64_t memory_free = 0;  // bytes; 0: unknown
  std::uint64_t last_cache = 0;   // bytes; 0: unknown
  double memory_gb_s = 0;         // what the hardware states; 0: unknown
  bool host_clock = false;        // the device's time stamps cannot be believed
  double start_ms = 0;            // loading, context, kernels
};

inline constexpr int kQueues = 4;  // never more than GPU_MAX_HW_QUEUES

struct Arg {
  Arg(std::uint32_t v) : size(sizeof v) { std::memcpy(&bytes, &v, sizeof v); }  // NOLINT(google-explicit-constructor)
  Arg(float v) : size(sizeof v) { std::memcpy(&bytes, &v, sizeof v); }          // NOLINT(google-explicit-constructor)
  static Arg buffer(std::uint64_t handle) {
    Arg arg(0U);
    arg.bytes = handle;
    arg.size = sizeof handle;
    return arg;
  }
  std::uint64_t bytes = 0;
  std::size_t size;
};

// On one clock for all commands of a Gpu.
struct Interval {
  double start_us = 0, end_us = 0;
  [[nodiscard]] double us() const { return end_us - start_us; }
};

class Gpu {
 public:
  using Buffer = std::uint64_t;  // 0: none
  using Ticket = std::size_t;

  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  Facts facts;

  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void release(Buffer buffer) = 0;
  virtual void* pin(std::size_t bytes) = 0;  // null on failure
  virtual void unpin(void* memory) = 0;

  // Returns when the host's memory may be used again; a ticket times the copy itself.
  virtual void write(Buffer to, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, Buffer from, std::size_t bytes) = 0;
  // From and to pinned memory, in a queue.
  virtual void write_async(int queue, Buffer to, const void* from, std::size_t bytes, Ticket* ticket = nullptr) = 0;
  virtual void read_async(int queue, void* to, Buffer from, std::size_t bytes, Ticket* ticket = nullptr) = 0;

  // One-dimensional: `groups` groups of `size`.
  virtual void launch(int queue, Kernel kernel, std::size_t groups, std::size_t size, std::initializer_list<Arg> args,
                      Ticket* ticket = nullptr) = 0;
  virtual void flush(int queue) = 0;
  virtual void finish(int queue) = 0;
  virtual Interval interval(Ticket ticket) = 0;  // of a command that has finished
  virtual void forget_tickets() = 0;

  virtual void create_queue() = 0;         // one more, and destroys it
  virtual bool build(unsigned nonce) = 0;  // compiles a kernel that no cache has; false where nothing compiles
  virtual bool has_mma() { return false; }
  virtual void launch_mma(std::size_t /*groups*/, Buffer /*out*/, std::uint32_t /*rounds*/, Ticket* /*ticket*/) {}
  // A copy between this device and the next; GB/s, or nothing where there is no second.
  virtual std::optional<double> peer_copy(std::size_t /*bytes*/) { return std::nullopt; }
  virtual std::uint64_t free_memory() { return facts.memory_free; }

  [[nodiscard]] bool ok() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  void clear_error() { error_.clear(); }

 protected:
  // True when it is well.
  bool check(bool good, const std::string& what) {
    if (!good && error_.empty()) error_ = what;
    return good;
  }
  std::string error_;
};

struct Selection {
  std::optional<PciAddress> device;
  bool allow_cpu = false;
};
// ErrorCode::Unavailable: no runtime; NotFound: a runtime, and no device that was asked for.
Result<std::unique_ptr<Gpu>> open_opencl(const Selection& selection);
Result<std::unique_ptr<Gpu>> open_cuda(const Selection& selection);
Result<std::unique_ptr<Gpu>> open_hip(const Selection& selection);

// dlopen of the first that loads; the text names what was tried.
struct Library {
  void* handle = nullptr;
  std::string name;
};
Result<Library> load_library(const std::vector<std::string>& names);

}  // namespace gpuhealth::canary
