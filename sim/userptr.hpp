// SPDX-License-Identifier: Apache-2.0
// How a kernel pins memory for the GPU (DRM_AMDGPU_GEM_USERPTR), in the forms that amdgpu has had. What the caller's
// pages are is asked of the real kernel below; what becomes of them is simulated.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/caller.hpp"

namespace gpuhealth::sim {

enum class UserptrForm : std::uint8_t {
  Healthy,  // reads the notifier's sequence inside its retry loop: succeeds at once
  Fixed,    // has no retry loop: EAGAIN at once for each 2 MiB slot with copy-on-write to break, then success
  Stall,    // c08972f55594 without 342981fff328: EAGAIN after a second's spinning for each such slot, then success
};

struct UserptrPath {
  UserptrForm form = UserptrForm::Healthy;
  double slot_ms = 0;      // what pinning 2 MiB takes
  double cow_slot_ms = 0;  // the same where copy-on-write has to be broken
};

// Pages of which a write fault makes a copy: of a file, the zero page, shared with a forked process. By 2 MiB slot of
// the address space; one list of page addresses for each slot that has any.
std::vector<std::vector<std::uint64_t>> copied_on_write(const std::vector<std::uint64_t>& pagemap,
                                                        std::uint64_t address);

// One attempt. `finish`: what the ioctl returns (0 or an errno) once `wait_ms` are over, or `spin_ms` were spent inside
// the kernel by the caller.
struct Pinning {
  int error = 0;
  double wait_ms = 0;
  double spin_ms = 0;
};
Pinning pin(const Caller& caller, std::uint64_t address, std::uint64_t bytes, std::uint32_t flags,
            const UserptrPath& path);

}  // namespace gpuhealth::sim
