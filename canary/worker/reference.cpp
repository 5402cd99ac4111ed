// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "canary/worker/kernels.hpp"

namespace gpuhealth::canary::reference {
namespace {

constexpr std::uint32_t kA = 1664525;
constexpr std::uint32_t kC = 1013904223;

}  // namespace

std::uint32_t lcg(std::uint32_t x, std::uint64_t steps) {
  // The step is affine; squaring it doubles the number of steps.
  std::uint32_t a = kA;
  std::uint32_t c = kC;
  for (; steps > 0; steps >>= 1U) {
    if ((steps & 1U) != 0) x = a * x + c;
    c = a * c + c;
    a = a * a;
  }
  return x;
}

std::uint32_t spin(std::uint32_t lane, std::uint32_t turns) {
  for (std::uint64_t steps = std::uint64_t{turns} * 4096; steps > 0; --steps) {
    lane = lane * kA + kC;
    lane ^= lane >> 15U;
  }
  return lane;
}

namespace {

[[gnu::always_inline]] inline void mix_lanes(std::span<std::uint32_t> out, std::uint32_t rounds, std::uint32_t seed) {
  constexpr std::size_t kBlock = 32;  // lanes side by side, for the compiler to put into vectors
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    std::array<std::uint32_t, kBlock> x{};
    std::array<std::uint32_t, kBlock> y{};
    for (std::size_t i = 0; i < kBlock; ++i) {
      x.at(i) = static_cast<std::uint32_t>(first + i) ^ seed;
      y.at(i) = x.at(i) * 2654435761U + 1U;
    }
    for (std::uint32_t r = 0; r < rounds; ++r) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        x[i] ^= x[i] << 13U;
        x[i] ^= x[i] >> 17U;
        x[i] ^= x[i] << 5U;
        y[i] = y[i] * kA + x[i];
      }
    }
    std::copy_n(y.begin(), std::min(kBlock, out.size() - first), out.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void mix_wide(std::span<std::uint32_t> out, std::uint32_t rounds, std::uint32_t seed) {
  mix_lanes(out, rounds, seed);
}
#endif

}  // namespace

void mix(std::span<std::uint32_t> out, std::uint32_t rounds, std::uint32_t seed) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return mix_wide(out, rounds, seed);
#endif
  mix_lanes(out, rounds, seed);
}

std::array<float, 16> fma(std::uint32_t rounds) {
  std::array<float, 16> out{};
  for (std::size_t lane = 0; lane < out.size(); ++lane) {
    std::array<float, 4> v{};
    for (std::size_t j = 0; j < 4; ++j) v.at(j) = static_cast<float>(lane) + static_cast<float>(j);
    for (std::uint32_t r = 0; r < rounds; ++r) {
      for (auto& x : v) x = std::fma(x, 0.999F, 0.001F);
    }
    out.at(lane) = (v[0] + v[1]) + (v[2] + v[3]);
  }
  return out;
}

std::vector<std::uint32_t> fold(std::span<const std::uint32_t> period, std::uint32_t count) {
  std::vector<std::uint32_t> out(period.size(), 2166136261U);
  for (std::size_t g = 0; g < period.size(); ++g) {
    for (std::uint32_t k = 0; k < count; ++k) out[g] = (out[g] ^ period[g]) * 16777619U;
  }
  return out;
}

std::vector<std::uint32_t> triad_period() {
  std::vector<std::uint32_t> out;
  out.reserve(1024);
  for (std::uint32_t i = 0; i < 1024; ++i)
    out.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(i + 3 * ((i * 7) & 1023U))));
  return out;
}

std::uint32_t chase(std::uint32_t start, std::uint32_t steps, std::uint32_t mask) {
  for (std::uint32_t s = 0; s < steps; ++s) start = (start * kA + kC) & mask;
  return start;
}

std::uint32_t gather(std::uint32_t lane, std::uint32_t steps, std::uint32_t mask) {
  std::uint32_t at = (lane * 2654435761U) & mask;
  std::uint32_t h = 0;
  for (std::uint32_t s = 0; s < steps; ++s) {
    at = (((at ^ (s * 40503U)) & mask) * kA + kC) & mask;
    h = h * 31U + at;
  }
  return h;
}

std::uint32_t pattern(std::uint32_t kind, std::uint32_t i, std::uint32_t seed) {
  switch (kind) {
    case 0:
      return i ^ seed;
    case 1:
      return 1U << ((i + seed) & 31U);
    case 2:
      return ~(1U << ((i + seed) & 31U));
    case 3:
      return ((i + seed) & 1U) != 0 ? 0x55555555U : 0xaaaaaaaaU;
    default:
      return i % 20 == seed % 20 ? seed * 2654435761U : ~(seed * 2654435761U);
  }
}

}  // namespace gpuhealth::canary::reference
