// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

constexpr std::uint32_t kLimit = 1000;

// Open ones first, then what history remembers.
Result<std::vector<Condition>> known_conditions(const Context& context, WallTime now) {
  auto client = connect(context);
  if (!client) return tl::unexpected<Error>(client.error());
  auto open = client->conditions();
  if (!open) return open;
  std::vector<Condition> all = std::move(*open);
  if (auto past = client->past_conditions(now - std::chrono::hours(24 * 365), kLimit)) {
    for (Condition& c : *past) {
      if (std::ranges::find(all, c.id, &Condition::id) == all.end()) all.push_back(std::move(c));
    }
  }
  return all;
}

// A type is explained from our own table; which ones are there is an extra that needs the daemon.
ExitCode explain_type(const Context& context, ConditionType type) {
  const WallTime now = wall_now();
  std::vector<Condition> open;
  if (auto client = dbus::Client::connect(context.bus)) {
    if (auto answer = client->conditions()) open = std::move(*answer);
  }
  show(
      context, [&] { return render_explain(type, open, now, context.terminal); },
      [&] { return json_explain(type, open); });
  return ExitCode::Ok;
}

ExitCode explain(const Context& context, const std::string& wanted) {
  if (const auto type = condition_type_from(wanted)) return explain_type(context, *type);
  const WallTime now = wall_now();
  const auto conditions = known_conditions(context, now);
  if (!conditions) return complain(context, conditions.error());
  const auto condition = choose_condition(*conditions, wanted);
  if (!condition) return complain(context, condition.error());
  show(
      context, [&] { return render_explain(**condition, now, context.terminal); },
      [&] { return json_condition(**condition); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_explain(CLI::App& app) {
  auto wanted = std::make_shared<std::string>();
  app.add_option("ID", *wanted, "a condition's id, a unique beginning of one, or a type such as overheating")
      ->required();
  return [wanted](const Context& context) { return explain(context, *wanted); };
}

}  // namespace gpuhealth::cli
