// SPDX-License-Identifier: Apache-2.0
// Samples one GPU through kept descriptors: runtime_status first, then what its state allows (sources.def is the
// allow-list). A file that is not there is `unsupported`; failures are told apart by errno, the GPU's state and whether
// it ever worked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/device.hpp"
#include "core/sample.hpp"

namespace gpuhealth::telemetry {

// Where the sampler is, for the one who watches it from another process through shared memory: which read has not
// returned. Every field is an atomic of its own; a name read while it changes is garbled and harmless.
struct Progress {
  static constexpr std::uint64_t kNoDevice = ~std::uint64_t{0};
  std::atomic<std::uint64_t> step{0};                // grows with every file
  std::atomic<std::uint64_t> device{kNoDevice};      // packed PCI address, see pack()
  std::array<std::atomic<std::uint64_t>, 6> name{};  // the file's name, cut to 48 bytes

  void at(std::uint64_t packed_device, std::string_view file);
  void idle();
  [[nodiscard]] std::string file() const;
};

class Sampler {
 public:
  Sampler(const std::string& sysroot, const DeviceInfo& device, Progress* progress = nullptr);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // Fills `out` but for its time. `slow` also reads limits, tables and counters; the values of the last slow sample are
  // repeated in fast ones. `now` paces the reads of an idle GPU that could go to sleep (see sampler.cpp).
  void sample(bool slow, SteadyTime now, Sample& out);

  // The gpu_metrics bytes of the last sample; empty when there are none.
  [[nodiscard]] std::span<const std::uint8_t> metrics() const;
  // "temperature.edge" -> "hwmon/hwmon3/temp1_input".
  [[nodiscard]] std::map<std::string, std::string> sources() const;
  // False once a read has said ENODEV: the device has left, or its driver.
  [[nodiscard]] bool present() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::uint64_t pack(const PciAddress& address);
PciAddress unpack(std::uint64_t packed);

}  // namespace gpuhealth::telemetry
