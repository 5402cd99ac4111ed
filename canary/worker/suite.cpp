// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "canary/worker/bench.hpp"

namespace gpuhealth::canary {
namespace {

// In the order in which they run: d2h_pin right after h2d_pin; what allocates much in between.
constexpr std::array kCanaries = std::to_array<SuiteRow>({
    {"launch_rtt", run_launch_rtt},
    {"chain", run_chain},
    {"overlap", run_overlap},
    {"triad", run_triad},
    {"gather", run_gather},
    {"fma32", run_fma32},
    {"mma16", run_mma16},
    {"h2d_pin", run_h2d_pin},
    {"d2h_pin", run_d2h_pin},
    {"bidi", run_bidi},
    {"copy_small", run_copy_small},
    {"h2d_anon", run_h2d_anon},
    {"h2d_file_rw", run_h2d_file_rw},
    {"h2d_file_ro", run_h2d_file_ro},
    {"alloc", run_alloc},
    {"queue_create", run_queue_create},
    {"checksum", run_checksum},
    {"copy_while_compute", run_copy_while_compute},
    {"vram_pattern", run_vram_pattern},
    {"jit", run_jit},
    {"p2p", run_p2p},
    {"vram_full", run_vram_full},
    {"oversubscribe", run_oversubscribe},
    {"burn", run_burn},
});

}  // namespace

std::span<const SuiteRow> all_gpu_canaries() {
  return kCanaries;
}

}  // namespace gpuhealth::canary
