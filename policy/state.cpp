// SPDX-License-Identifier: Apache-2.0
// What the evaluator remembers, as JSON: across restarts of the daemon and boots, so that no crash renews a budget.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "policy/evaluate.hpp"

namespace gpuhealth::policy {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kFormat = 1;
constexpr std::size_t kMostEntries = 100'000;

Json stamp(const Stamp& at) {
  return {{"wall", at.wall_us}, {"steady", at.steady_us}, {"this_boot", at.this_boot}};
}
Stamp stamp(const Json& json) {
  return {json.at("wall").get<std::int64_t>(), json.at("steady").get<std::int64_t>(), json.at("this_boot").get<bool>()};
}

Json request(const ActionRequest& r) {
  return {{"action", to_string(r.kind)}, {"device", r.device}, {"params", r.params},
          {"policy", r.policy},          {"rule", r.rule},     {"condition", r.condition},
          {"reason", r.reason}};
}
ActionRequest request(const Json& json) {
  ActionRequest out;
  const auto kind = action_kind_from(json.at("action").get<std::string>());
  if (!kind) throw std::invalid_argument("an action that does not exist");
  out.kind = *kind;
  json.at("device").get_to(out.device);
  json.at("params").get_to(out.params);
  json.at("policy").get_to(out.policy);
  json.at("rule").get_to(out.rule);
  json.at("condition").get_to(out.condition);
  json.at("reason").get_to(out.reason);
  return out;
}

Mode mode(const Json& json) {
  const auto out = mode_from(json.get<std::string>());
  if (!out) throw std::invalid_argument("a mode that does not exist");
  return *out;
}

bool idle(const State::Cell& cell) {
  return !cell.active && cell.held_us == 0 && cell.memory == 0 && cell.said == Block::None;
}

Json cells(const State& state) {
  Json out = Json::array();
  for (std::size_t i = 0; i < state.cells.size(); ++i) {
    const State::Cell& cell = state.cells[i];
    if (idle(cell)) continue;
    out.push_back({{"rule", i / state.devices.size()},
                   {"device", i % state.devices.size()},
                   {"held", cell.held_us},
                   {"cleared", cell.cleared_us},
                   {"memory", cell.memory},
                   {"active", cell.active},
                   {"fired", cell.fired},
                   {"fired_as", to_string(cell.fired_as)},
                   {"said", static_cast<int>(cell.said)}});
  }
  return out;
}

void read_cells(const Json& json, State& state) {
  for (const Json& row : json) {
    const auto rule = row.at("rule").get<std::size_t>();
    const auto device = row.at("device").get<std::size_t>();
    if (rule >= state.rules.size() || device >= state.devices.size())
      throw std::invalid_argument("a rule or GPU that is not listed");
    State::Cell& cell = state.cells.at(rule * state.devices.size() + device);
    cell.held_us = row.at("held").get<std::int64_t>();
    cell.cleared_us = row.at("cleared").get<std::int64_t>();
    cell.memory = row.at("memory").get<std::uint16_t>();
    cell.active = row.at("active").get<bool>();
    cell.fired = row.at("fired").get<bool>();
    cell.fired_as = row.contains("fired_as") ? mode(row.at("fired_as")) : Mode::Enforce;
    const int said = row.at("said").get<int>();
    if (said < 0 || said > static_cast<int>(Block::Conflict))
      throw std::invalid_argument("a reason that does not exist");
    cell.said = static_cast<Block>(said);
  }
}

State read_state(const Json& json) {
  State out;
  if (json.at("format").get<int>() != kFormat) throw std::invalid_argument("another format");
  json.at("boot_id").get_to(out.boot_id);
  if (json.contains("last")) out.last = stamp(json.at("last"));
  out.boot_wall_us = json.value("boot_wall", std::int64_t{0});
  if (json.contains("breaker")) out.breaker = stamp(json.at("breaker"));
  json.at("rules").get_to(out.rules);
  json.at("devices").get_to(out.devices);
  if (out.rules.size() > kMostEntries || out.devices.size() > 1024)
    throw std::invalid_argument("too many rules or GPUs");
  out.cells.resize(out.rules.size() * out.devices.size());
  out.firings.resize(out.rules.size());
  read_cells(json.at("cells"), out);
  for (const Json& row : json.at("firings")) {
    const auto rule = row.at("rule").get<std::size_t>();
    out.firings.at(rule).push_back({row.at("device").get<std::string>(), stamp(row.at("at")), mode(row.at("mode"))});
  }
  for (const Json& row : json.at("changes")) out.changes.push_back({stamp(row.at("at")), mode(row.at("mode"))});
  for (const Json& row : json.at("holds")) {
    out.holds.push_back({row.at("rule").get<std::string>(), row.at("device").get<std::string>(), mode(row.at("mode")),
                         request(row.at("request")), row.at("revert_held").get<std::int64_t>(), 0});
  }
  return out;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, 5> names = {"act", "shadow", "observe", "blocked", "revert"};
  return names.at(static_cast<std::size_t>(outcome));
}

std::string_view to_string(Block block) {
  constexpr std::array<std::string_view, 9> names = {"none", "cooldown", "budget", "machine-limit", "breaker",
                                                     "busy", "battery",  "window", "conflict"};
  return names.at(static_cast<std::size_t>(block));
}

Duration age(const Stamp& stamp, const Now& now) {
  const std::int64_t us = stamp.this_boot ? now.steady.us - stamp.steady_us : to_microseconds(now.wall) - stamp.wall_us;
  return Duration(std::max<std::int64_t>(us, 0));  // what lies ahead, because a clock was set back, is recent
}

std::string save(const State& state) {
  Json out = {{"format", kFormat}, {"boot_id", state.boot_id}};
  if (state.last) out["last"] = stamp(*state.last);
  out["boot_wall"] = state.boot_wall_us;
  if (state.breaker) out["breaker"] = stamp(*state.breaker);
  out["rules"] = state.rules;
  out["devices"] = state.devices;
  out["cells"] = state.devices.empty() ? Json::array() : cells(state);
  out["firings"] = Json::array();
  for (std::size_t rule = 0; rule < state.firings.size(); ++rule)
    for (const auto& f : state.firings[rule])
      out["firings"].push_back(
          {{"rule", rule}, {"device", f.device}, {"at", stamp(f.at)}, {"mode", to_string(f.mode)}});
  out["changes"] = Json::array();
  for (const auto& c : state.changes) out["changes"].push_back({{"at", stamp(c.at)}, {"mode", to_string(c.mode)}});
  out["holds"] = Json::array();
  for (const auto& h : state.holds)
    out["holds"].push_back({{"rule", h.rule},
                            {"device", h.device},
                            {"mode", to_string(h.mode)},
                            {"request", request(h.request)},
                            {"revert_held", h.revert_held_us}});
  return out.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<State> load_state(std::string_view text) {
  const Json json = parse_json<Json>(text);
  if (json.is_discarded()) return fail(ErrorCode::InvalidInput, "the state of policies cannot be used: it is no JSON");
  try {
    return read_state(json);
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidInput, std::string("the state of policies cannot be used: ") + error.what());
  }
}

void reset_breaker(State& state) {
  state.breaker.reset();  // what was done still counts: it opens again when as much follows within its time
}

}  // namespace gpuhealth::policy
