// SPDX-License-Identifier: Apache-2.0
// The kernels, and what the host knows of their results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gpuhealth::canary {

extern const char* const kKernelSource;  // OpenCL C and HIP
extern const char* const kKernelPtx;     // the same, PTX 6.0 for sm_50
extern const char* const kMmaPtx;        // gh_mma, PTX 7.0 for sm_80

enum class Kernel : std::uint8_t { Nop, Bump, Init, Triad, Fold, Mix, Fma, Spin, Links, Chase, Gather, Fill, Check };
inline constexpr std::array<const char*, 13> kKernelNames = {"gh_nop",    "gh_bump", "gh_init", "gh_triad", "gh_fold",
                                                             "gh_mix",    "gh_fma",  "gh_spin", "gh_links", "gh_chase",
                                                             "gh_gather", "gh_fill", "gh_check"};
inline constexpr std::uint32_t kPatterns = 5;

namespace reference {

// x after `steps` times x = 1664525 x + 1013904223 (mod 2^32), in a logarithm of the steps.
std::uint32_t lcg(std::uint32_t x, std::uint64_t steps);
// gh_spin of one lane.
std::uint32_t spin(std::uint32_t lane, std::uint32_t turns);
// gh_mix of lanes 0 .. out.size() - 1.
void mix(std::span<std::uint32_t> out, std::uint32_t rounds, std::uint32_t seed);
// gh_fma of lanes 0 .. 15.
std::array<float, 16> fma(std::uint32_t rounds);
// gh_fold of an array whose words have a period that divides `lanes`; the first `period.size()` lanes.
std::vector<std::uint32_t> fold(std::span<const std::uint32_t> period, std::uint32_t count);
// Bits of b[i] + 3 c[i] as gh_init and gh_triad make them, i = 0 .. 1023.
std::vector<std::uint32_t> triad_period();
std::uint32_t chase(std::uint32_t start, std::uint32_t steps, std::uint32_t mask);
std::uint32_t gather(std::uint32_t lane, std::uint32_t steps, std::uint32_t mask);
std::uint32_t pattern(std::uint32_t kind, std::uint32_t i, std::uint32_t seed);

}  // namespace reference
}  // namespace gpuhealth::canary
