// SPDX-License-Identifier: Apache-2.0
// Where a sampler is, as the one who watches it sees (sampler.hpp).
#include <algorithm>
#include <cstring>

#include "telemetry/parse.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

std::uint64_t pack(const PciAddress& a) {
  return (std::uint64_t{a.domain} << 32) | (std::uint64_t{a.bus} << 16) | (std::uint64_t{a.device} << 8) | a.function;
}

PciAddress unpack(std::uint64_t p) {
  return {static_cast<std::uint32_t>(p >> 32), static_cast<std::uint8_t>(p >> 16), static_cast<std::uint8_t>(p >> 8),
          static_cast<std::uint8_t>(p)};
}

void Progress::at(std::uint64_t packed_device, std::string_view file) {
  std::array<std::uint64_t, 6> words{};
  std::memcpy(words.data(), file.data(), std::min(file.size(), sizeof words));
  for (std::size_t i = 0; i < words.size(); ++i) name[i].store(words[i], std::memory_order_relaxed);
  device.store(packed_device, std::memory_order_relaxed);
  step.fetch_add(1, std::memory_order_release);
}

void Progress::idle() {
  device.store(kNoDevice, std::memory_order_relaxed);
  step.fetch_add(1, std::memory_order_release);
}

std::string Progress::file() const {
  std::array<char, sizeof(std::uint64_t) * 6> bytes{};
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto word = name[i].load(std::memory_order_relaxed);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  return std::string(trimmed({bytes.data(), bytes.size()}));
}

}  // namespace gpuhealth::telemetry
