// SPDX-License-Identifier: Apache-2.0
// Any bytes as grubenv; a change keeps the length and everything else.
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "grub/grubenv.hpp"

using namespace gpuhealth::grub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const GrubEnv env = parse_grubenv(bytes);
  const auto changed = with_value(bytes, "next_entry", "a>b");
  require(!changed || env.damage.empty(), "a damaged block is not written");
  if (!changed) return 0;
  require(changed->size() == kGrubEnvSize, "the length stays");
  GrubEnv after = parse_grubenv(*changed);
  require(after.damage.empty() && after.values["next_entry"] == "a>b", "the value is there");
  for (const auto& [name, value] : env.values)
    require(name == "next_entry" || after.values[name] == value, "the others stay");
  return 0;
}
