// SPDX-License-Identifier: Apache-2.0
// The body of gpuhealth-reader: answers requests with samples until its input ends. It may hang in a read at any time;
// the one who watches `progress` sees where.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "telemetry/asic.hpp"
#include "telemetry/clients.hpp"
#include "telemetry/frame.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

class Reader {
 public:
  Reader(std::string sysroot, const Clock& clock, Progress* progress);

  // Appends the frames that answer `request` to `out`.
  void answer(const Request& request, std::vector<std::uint8_t>& out);

 private:
  void discover(const Request& request, std::vector<std::uint8_t>& out);
  void sample(const Request& request, std::vector<std::uint8_t>& out);
  void clients(const Request& request, std::vector<std::uint8_t>& out);
  Sampler* sampler_of(std::uint64_t device);

  std::string sysroot_;
  const Clock& clock_;
  Progress* progress_;
  NameTable names_;
  std::map<std::uint64_t, Sampler> samplers_;
  ClientScanner scanner_;
  SampleFrame frame_;  // kept, so that a sample allocates nothing
};

// Serves standard input and output by `answer`; returns when the input ends.
int serve(const std::function<void(const Request&, std::vector<std::uint8_t>&)>& answer, int in, int out);

}  // namespace gpuhealth::telemetry
