// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  bool all = false;
  std::string since;
};
constexpr std::uint32_t kLimit = 1000;
constexpr const char* kDefaultSince = "30d";

// Those of `past` that are not among the open ones.
void add_past(std::vector<Condition>& conditions, std::vector<Condition> past) {
  const std::size_t open = conditions.size();
  for (Condition& c : past) {
    const auto end = conditions.begin() + static_cast<std::ptrdiff_t>(open);
    if (std::ranges::find(conditions.begin(), end, c.id, &Condition::id) == end) conditions.push_back(std::move(c));
  }
}

ExitCode conditions(const Context& context, const Options& options) {
  const WallTime now = wall_now();
  const bool past_too = options.all || !options.since.empty();
  const auto since = parse_when(options.since.empty() ? kDefaultSince : options.since, now);
  if (!since) {
    complain(context, since.error());
    return ExitCode::Usage;
  }
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  auto open = client->conditions();
  if (!open) return complain(context, open.error());
  std::vector<Condition> found = worst_first(std::move(*open));
  const bool attention = needs_attention(found);
  if (past_too) {
    auto past = client->past_conditions(*since, kLimit);
    if (!past) return complain(context, past.error());
    add_past(found, std::move(*past));
  }
  show(
      context, [&] { return render_conditions(found, now, context.terminal); }, [&] { return json_conditions(found); });
  return attention ? ExitCode::ConditionsPresent : ExitCode::Ok;
}

}  // namespace

Action set_up_conditions(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_flag("--all", options->all, "also those that are over (of the last 30 days)");
  app.add_option("--since", options->since, "also those that are over, since then: 24h, 7d, 2026-11-01")
      ->type_name("WHEN");
  return [options](const Context& context) { return conditions(context, *options); };
}

}  // namespace gpuhealth::cli
