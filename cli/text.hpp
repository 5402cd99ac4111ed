// SPDX-License-Identifier: Apache-2.0
// Text on a terminal: made safe, measured in columns, cut and wrapped. All UTF-8; nothing here depends on the locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::cli {

// The one gate between foreign text (hardware files, bus, file names) and a terminal: control characters, invalid UTF-8
// and characters that reorder or hide text become '?'; tabs and newlines become a space.
std::string clean(std::string_view text);

// Columns that clean text takes: 2 for East Asian wide characters and pictographs, 0 for combining marks.
std::size_t width(std::string_view text);

// Cut to `columns`, ending in "…" ("~" when not `utf8`) where something was lost.
std::string fit(std::string_view text, std::size_t columns, bool utf8 = true);

// Breaks at spaces; a word longer than `columns` is not broken. `columns` 0: one line.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

// What a terminal without UTF-8 can show: every other character becomes '?'.
std::string to_ascii(std::string_view text);

}  // namespace gpuhealth::cli
