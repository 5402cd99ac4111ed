// SPDX-License-Identifier: Apache-2.0
// Any bytes as /etc/default/grub.
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "grub/settings.hpp"

using namespace gpuhealth::grub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Settings settings;
  read_settings(settings, "grub", {reinterpret_cast<const char*>(data), size});
  for (const auto& [name, setting] : settings.values) require(setting.line > 0, "a setting stands on a line");
  require(settings.warnings.size() <= 100, "warnings have an end");
  return 0;
}
