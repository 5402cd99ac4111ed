// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/render.hpp"
#include "cli/text.hpp"

namespace gpuhealth::cli {

Page render_doctor(std::span<const CheckResult> results, const Terminal& terminal) {
  constexpr std::array<Tone, 3> tones = {Tone::Good, Tone::Warning, Tone::Note};
  constexpr std::size_t state_columns = 9;  // "missing" and two spaces
  std::size_t name_columns = 0;
  for (const auto& r : results) name_columns = std::max(name_columns, width(r.name) + 2);
  const std::size_t indent = state_columns + name_columns;

  Page page;
  std::size_t lacking = 0;
  for (const auto& r : results) {
    std::string state(to_string(r.state));
    state.resize(state_columns, ' ');
    lacking += r.state == CheckState::Missing ? 1 : 0;
    const std::size_t room = terminal.columns == 0 ? 0 : std::max<std::size_t>(terminal.columns, indent + 20) - indent;
    const auto found = wrap(clean(r.found), room);
    page.line({{state, tones.at(static_cast<std::size_t>(r.state))},
               {r.name + std::string(name_columns - width(r.name), ' ')},
               {found.empty() ? "" : found.front()}});
    for (std::size_t i = 1; i < found.size(); ++i) page.line({{std::string(indent, ' ')}, {found[i]}});
    if (r.state == CheckState::Ok) continue;
    page.paragraph("why: " + r.why, indent, terminal.columns);
    if (!r.advice.empty()) page.paragraph("do: " + r.advice, indent, terminal.columns);
  }
  page.line();
  page.line({{lacking == 0 ? "Nothing is missing." : fmt::format("{} missing.", lacking)}});
  return page;
}

}  // namespace gpuhealth::cli
