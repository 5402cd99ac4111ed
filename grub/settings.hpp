// SPDX-License-Identifier: Apache-2.0
// /etc/default/grub and its drop-ins: shell text that grub-mkconfig sources. Read as a shell would, running nothing:
// what a command would print, or what a condition would choose, is not known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::grub {

struct Setting {
  std::optional<std::string> value;  // null: only the shell that sources it knows
  std::string file;
  std::uint32_t line = 0;
};

struct Settings {
  std::map<std::string, Setting, std::less<>> values;
  std::vector<std::string> warnings;  // "FILE:3: …", what will not do what it looks like

  [[nodiscard]] const Setting* find(std::string_view name) const;
  [[nodiscard]] std::string value(std::string_view name) const;  // empty when absent or unknown
};

// Adds what `text` sets to what earlier files did.
void read_settings(Settings& settings, std::string_view file, std::string_view text);

}  // namespace gpuhealth::grub
