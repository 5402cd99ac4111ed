// SPDX-License-Identifier: Apache-2.0
// Any text as libdrm's table of names: what comes out can be shown, and our own rows are always there.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "telemetry/asic.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto names = gpuhealth::telemetry::NameTable::parse(text);
  for (const std::uint16_t id : {std::uint16_t{0x744C}, std::uint16_t{0x731F}, std::uint16_t{0x0000}}) {
    for (unsigned revision = 0; revision < 256; revision += 5) {
      const auto found = names.find(id, static_cast<std::uint8_t>(revision));
      for (const char c : found.name) {
        if (c < ' ' || c > '~') std::abort();
      }
    }
  }
  if (names.find(0x744C, std::nullopt).name.empty()) std::abort();
  return 0;
}
