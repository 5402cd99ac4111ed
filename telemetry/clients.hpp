// SPDX-License-Identifier: Apache-2.0
// Who uses the GPUs: DRM clients by fdinfo, compute processes by KFD's list, what they spend by /proc. Opens no node
// and wakes nothing. A file of a process that holds a GPU which has left, or of kernels whose fdinfo can crash
// (before 6.1: nvtop 168, amdgpu_bo_get_memory), is not read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/device.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

struct GpuClients {
  PciAddress gpu;
  ClientLook look;
};

// Follows processes from look to look: most use no GPU, and their descriptors are listed at every sixth look only.
class ClientScanner {
 public:
  // `own`: a process whose descendants, itself included, are no clients; 0: none.
  ClientScanner(std::string root, std::uint32_t own, Progress* progress = nullptr);
  ~ClientScanner();
  ClientScanner(ClientScanner&&) noexcept;
  ClientScanner& operator=(ClientScanner&&) noexcept;

  // Of these GPUs; descriptors of others are not read. `now` is real time: what was spent is divided by it.
  std::vector<GpuClients> look(const std::vector<PciAddress>& gpus, SteadyTime now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::telemetry
