// SPDX-License-Identifier: Apache-2.0
// Ready-made machines of synthetic cards, and a little life for them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/card.hpp"

namespace gpuhealth::sim {

// Three cards: a healthy RX 7900 XTX, an RX 6900 XT whose junction is above its critical limit under load, and an
// RX 9070 under load whose slot link has 4 of 16 lanes.
std::vector<Card> demo_machine();
// `count` (at most 64) good RX 7900 XTX, every second one under load.
std::vector<Card> healthy_machine(unsigned count);

// The card as it may look `second` seconds later: small noise around `base`, the same for the same seed. What is wrong
// with a card stays wrong.
Card with_noise(const Card& base, std::uint32_t seed, unsigned second);

}  // namespace gpuhealth::sim
