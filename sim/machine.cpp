// SPDX-License-Identifier: Apache-2.0
#include "sim/machine.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace gpuhealth::sim {
namespace {

constexpr std::uint32_t kNavi2xTempHotspot = 1U << 2;
constexpr std::uint64_t kIndepTempHotspot = std::uint64_t{1} << 36;

Card overheating_card(unsigned n) {
  Card card = loaded_card(rx6900xt(), n);
  card.state.edge_c = 88;
  card.state.junction_c = 112;  // its critical limit is 110
  card.state.memory_c = 86;
  card.state.power_w = 214;
  card.state.gfx_mhz = 1480;
  card.state.fan_rpm = 0;  // the cause: the fan stands
  card.state.throttle_bits = kNavi2xTempHotspot;
  card.state.indep_throttle_bits = kIndepTempHotspot;
  return card;
}

Card narrow_link_card(unsigned n) {
  Card card = loaded_card(rx9070(), n);
  card.state.link.width = 4;
  return card;
}

std::uint32_t mix(std::uint32_t seed, const Card& card, unsigned second) {
  return seed * 2654435761U + static_cast<std::uint32_t>(card.place.gpu.bus) * 40503U + second * 69069U;
}

// std::uniform_real_distribution differs between libraries; this does not.
double noise(std::mt19937& generator, double amplitude) {
  return amplitude * (2.0 * static_cast<double>(generator()) / 4294967295.0 - 1.0);
}

unsigned percent(double value) {
  return static_cast<unsigned>(std::clamp(std::lround(value), 0L, 100L));
}

}  // namespace

std::vector<Card> demo_machine() {
  return {idle_card(rx7900xtx(), 0), overheating_card(1), narrow_link_card(2)};
}

std::vector<Card> healthy_machine(unsigned count) {
  std::vector<Card> cards;
  for (unsigned n = 0; n < std::min(count, 64U); ++n)
    cards.push_back(n % 2 == 0 ? idle_card(rx7900xtx(), n) : loaded_card(rx7900xtx(), n));
  return cards;
}

Card with_noise(const Card& base, std::uint32_t seed, unsigned second) {
  Card card = base;
  std::mt19937 generator(mix(seed, base, second));
  CardState& s = card.state;
  const double wave = std::sin(second / 9.0);
  s.edge_c += noise(generator, 0.5) + wave;
  s.junction_c += noise(generator, 0.5) + wave;
  s.memory_c += noise(generator, 0.5) + wave;
  s.power_w = std::max(1.0, s.power_w * (1 + noise(generator, 0.02)));
  if (s.busy_percent > 5) s.busy_percent = percent(s.busy_percent + noise(generator, 2) - 1);
  if (s.memory_busy_percent > 5) s.memory_busy_percent = percent(s.memory_busy_percent + noise(generator, 4));
  if (s.fan_rpm != 0) s.fan_rpm = static_cast<unsigned>(s.fan_rpm + noise(generator, 15));
  s.uptime_ns += std::uint64_t{second} * 1'000'000'000;
  return card;
}

}  // namespace gpuhealth::sim
