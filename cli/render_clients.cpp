// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/numbers.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

std::string share(const std::optional<double>& percent) {
  return percent ? format_value(*percent, Unit::Percent) : std::string("-");
}

}  // namespace

void add_compute(Page& page, std::span<const ComputeNode> nodes, std::span<const std::string> peers,
                 const std::string& compute_partition, const std::string& memory_partition, const Terminal& terminal,
                 std::size_t indent) {
  std::vector<Line> rows;
  if (!compute_partition.empty())
    rows.push_back({{"partitions"},
                    {compute_partition + (memory_partition.empty() ? "" : ", " + memory_partition) +
                     fmt::format(": {} compute node{}", nodes.size(), nodes.size() == 1 ? "" : "s")}});
  if (!peers.empty()) rows.push_back({{"XGMI to"}, {fmt::format("{}", fmt::join(peers, ", "))}});
  if (!rows.empty()) add_table(page, {{""}, {"", Align::Left, true}}, rows, terminal, indent);
}

void add_clients(Page& page, std::span<const GpuClient> clients, const std::map<std::uint32_t, std::string>& names,
                 const Terminal& terminal, std::size_t indent) {
  if (clients.empty()) return;
  page.line({Span(std::string(indent, ' ')), {"Used by", Tone::Heading}});
  std::vector<Line> rows;
  for (const auto& c : clients) {
    const auto name = names.find(c.pid);
    rows.push_back({{fmt::format("pid {}", c.pid)},
                    {name == names.end() ? "" : name->second},
                    {c.vram_bytes ? format_bytes(static_cast<double>(*c.vram_bytes)) : "-"},
                    {share(c.engine_percent)},
                    {share(c.cpu_percent)}});
  }
  add_table(page,
            {{""},
             {"", Align::Left, true},
             {"video memory", Align::Right},
             {"engine", Align::Right},
             {"processor", Align::Right}},
            rows, terminal, indent + 2);
}

}  // namespace gpuhealth::cli
