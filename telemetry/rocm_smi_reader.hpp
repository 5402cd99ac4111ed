// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs as librocm_smi64 sees them: a second opinion. The library aborts its process on files that it does not
// expect (docs/readers.md), so every query is named before it is made, and one that ended a reader is not made again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/sample.hpp"
#include "telemetry/frame.hpp"
#include "telemetry/rocm_smi_api.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

class RocmSmiReader {
 public:
  // `library`: "librocm_smi64.so.1", or a file. `skip`: "0000:03:00.0/power_cap_get", the first word
  // of what progress said.
  RocmSmiReader(std::string library, std::vector<std::string> skip, Progress* progress);
  ~RocmSmiReader();
  RocmSmiReader(const RocmSmiReader&) = delete;
  RocmSmiReader& operator=(const RocmSmiReader&) = delete;

  // Of a GPU that sleeps, or that the library does not know, there is no frame. A library that cannot be used is said
  // once, as the error of a devices frame.
  void answer(const Request& request, std::vector<std::uint8_t>& out);

 private:
  bool start(std::uint64_t first_device, std::uint64_t tick, std::vector<std::uint8_t>& out);
  void sample(std::uint64_t device, std::uint64_t tick, std::vector<std::uint8_t>& out);

  std::string library_;
  std::vector<std::string> skip_;
  Progress* progress_;
  rsmi::Api api_;
  bool tried_ = false;
  bool usable_ = false;
  std::map<std::uint64_t, std::uint32_t> index_of_;  // packed address -> the library's number
};

}  // namespace gpuhealth::telemetry
