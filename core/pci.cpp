// SPDX-License-Identifier: Apache-2.0
#include "core/pci.hpp"

#include <charconv>
#include <cstdio>

namespace gpuhealth {
namespace {

// Takes 1..max_digits hex digits from the front of `text`; null when there are none, or more.
std::optional<std::uint32_t> take_hex(std::string_view& text, std::size_t max_digits) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || digits == 0 || digits > max_digits) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_string(const PciAddress& a) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "%04x:%02x:%02x.%x", a.domain, a.bus, a.device, a.function);
  return buffer;
}

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const auto first = take_hex(text, 8);
  if (!first || !take(text, ':')) return std::nullopt;
  const auto second = take_hex(text, 2);
  if (!second) return std::nullopt;
  PciAddress a;
  std::uint32_t bus = *first;
  std::uint32_t device = *second;
  if (take(text, ':')) {  // the long form
    const auto third = take_hex(text, 2);
    if (!third) return std::nullopt;
    a.domain = *first;
    bus = *second;
    device = *third;
  }
  if (!take(text, '.')) return std::nullopt;
  const auto function = take_hex(text, 1);
  if (!function || !text.empty() || bus > 0xff || device > 31 || *function > 7) return std::nullopt;
  a.bus = static_cast<std::uint8_t>(bus);
  a.device = static_cast<std::uint8_t>(device);
  a.function = static_cast<std::uint8_t>(*function);
  return a;
}

}  // namespace gpuhealth
